/* What is counted of nodes, the manager, sessions, and what metadata targets do together: a part of
 * totals_list.h. */
#pragma once
#define TOTALS_CLUSTER(X)                                                                          \
    X(JOINS, "answers to nodes that join", true)                                                   \
    X(JOINS_GATHERED, "joins gathered in a version", true)                                         \
    X(MAPS, "newer maps that an MDT took", true)                                                   \
    X(MAP_CHANGES, "maps by changes, compared", true)                                              \
    X(MAP_PUSHES, "of a last version, pushed", true)                                               \
    X(MANAGER_CUTS, "cuts of the manager from all", true)                                          \
    X(MANAGER_DEAF, "that it hears nobody", false)                                                 \
    X(MANAGER_MUTE, "that nobody hears it", false)                                                 \
    X(EVICTIONS, "evictions for silence", true)                                                    \
    X(EVICTIONS_HELD, "held back, few nodes heard", true)                                          \
    X(REBUILT, "managers rebuilt", true)                                                           \
    X(REBUILT_BEGIN, "lost as a session began", true)                                              \
    X(REBUILT_END, "as one ended", true)                                                           \
    X(REBUILT_HANDOVER, "as slots were handed over", false)                                        \
    X(REBUILT_AGAIN, "rebuilt again, as that died", false)                                         \
    X(REBUILT_WITHOUT, "without a target that was gone", false)                                    \
    X(REBUILT_JOINED, "nodes that had to join anew", false)                                        \
    X(REBUILT_SESSIONS, "sessions that went on", true)                                             \
    X(STRAGGLERS, "clients cut off that write on", true)                                           \
    X(STRAGGLERS_TOLD, "files told to others meanwhile", true)                                     \
    X(STRAGGLERS_REFUSED, "writes of theirs refused then", true)                                   \
    X(FENCES, "sessions fenced whose opens were lost", true)                                       \
    X(FENCING_SETTLES, "lengths asked that fence them", true)                                      \
    X(LOSSES_OVER, "losses of a log that were over", true)                                         \
    X(ENDS_OVER, "sizes told as of such a loss", true)                                             \
    X(WRITERS_LEFT, "writers whose close power took, closed", true)                                \
    X(CHUNKS_BACK, "files whose chunks were given back", true)                                     \
    X(CHUNKS_KEPT, "of others they stayed, as somebody might have written", true)                  \
    X(LATE_AWAY, "closes told again, server was away", true)                                       \
    X(LATE_OPENS, "opens asked of again, server was away", true)                                   \
    X(RETURNS, "idle clients back at MDTs that restarted", true)                                   \
    X(LATE_WRITES, "writes at OSTs that joined", true)                                             \
    X(POOLS_LEFT, "pools that a full OST left", true)                                              \
    X(POOLS_BACK, "pools that one came back to", true)                                             \
    X(TARGETS_LOST, "targets declared lost", true)                                                 \
    X(LOST_ANSWERS, "answers of what they had", true)                                              \
    X(MDTS_LOST, "metadata targets of them", true)                                                 \
    X(LOST_PROBES, "answers of directories they had", true)                                        \
    X(PROMISES_LOST_KEPT, "promises to them kept", false)                                          \
    X(PROMISES_LOST_GONE, "promises to them given up", false)                                      \
    X(SHARES_LOST, "parts they had that count as done", false)                                     \
    X(MAPS_UNKEPT, "maps of that not kept for a while", false)                                     \
    X(ACCORDS, "transactions of several, compared", true)                                          \
    X(COPIES, "directories copied, or put back", true)                                             \
    X(COPIES_REFUSED, "copies refused", true)                                                      \
    X(COPIES_RUN, "of these, as another one runs", true)                                           \
    X(COPIES_MOVED, "lives registered elsewhere", true)                                            \
    X(AWAYS, "targets away while files go", true)                                                  \
    X(PUT_ASIDE, "orders put aside meanwhile", true)                                               \
    X(PAUSES, "pauses of listings for others", true)                                               \
    X(AWAY_ANSWERS, "calls whose patience was over", true)                                         \
    X(AWAY_AT_ONCE, "of these, answered at once", true)                                            \
    X(OLD_MAPS, "requests refused for an old map", true)                                           \
    X(SLOTS, "slots handed over", true)                                                            \
    X(SESSIONS_ENDED, "ends of sessions at MDTs", true)                                            \
    X(CROSSINGS, "transactions across logs", true)                                                 \
    X(CROSSINGS_AGAIN, "begun anew", true)                                                         \
    X(CROSSINGS_BUSY, "put off, many wait for one log", true)                                      \
    X(PROMISES_KEPT, "promises kept", true)                                                        \
    X(PROMISES_GONE, "promises aborted", true)                                                     \
    X(PROMISES_FOUND, "promises found by starts", true)                                            \
    X(DECISIONS_FOUND, "decisions found by starts", true)                                          \
    X(CUT_LOOKS, "coordinators cut at a look", true)                                               \
    X(CUT_PREPARES, "at their prepares", true)                                                     \
    X(CUT_DECISIONS, "at a decision", true)                                                        \
    X(CUT_COMMITS, "at their commits", true)                                                       \
    X(CUT_PROMISES, "participants cut at a promise", true)                                         \
    X(CUT_MARKS, "behind a commit", true)                                                          \
    X(TURNS_ASKED, "turns of moves asked for", true)                                               \
    X(TURNS_GIVEN, "turns given", true)                                                            \
    X(TURNS_RUN_OUT, "turns that ran out", false)                                                  \
    X(STALLS, "stalls of full logs", false)                                                        \
    X(WINDOW_WAITS, "waits for a window", true)                                                    \
    X(OUTCOMES_REFUSED, "outcomes refused", false)
