/* What is counted of a seed: enumerator, text, whether TOTALS_LEAST is the least of a long run. */
#pragma once
#define TOTALS(X)                                                                                  \
    X(OPERATIONS, "operations", true)                                                              \
    X(SUCCEEDED, "succeeded", true)                                                                \
    X(REFUSED, "refused", false)                                                                   \
    X(ALIVE, "answers when all was over", true)                                                    \
    X(ALIVE_NO_SPACE, "of these, no space", false)                                                 \
    X(LOST, "answers lost", true)                                                                  \
    X(INTERRUPTS, "of these, interrupted", true)                                                   \
    X(GIVEN_BACK, "opens given back behind an interrupt", true)                                    \
    X(RENAMES, "renames", true)                                                                    \
    X(REPLACED, "renames over a name", true)                                                       \
    X(EXCHANGED, "renames that exchange", true)                                                    \
    X(RENAMES_REFUSED, "renames refused", true)                                                    \
    X(PARENTS_KNOWN, "attributes of a directory kept, and told", true)                             \
    X(NAMELESS, "files made without a name", true)                                                 \
    X(NAMED, "of them given one", true)                                                            \
    X(DROPPED, "messages dropped", true)                                                           \
    X(DELAYED, "messages delayed", true)                                                           \
    X(DOUBLED, "messages doubled", true)                                                           \
    X(REORDERED, "messages reordered", true)                                                       \
    X(CUT_OFF, "messages cut off", true)                                                           \
    X(CONNECTED, "connections welcomed", true)                                                     \
    X(REFUSED_CONNECTIONS, "connections refused", true)                                            \
    X(BROKEN, "connections broken while asked", true)                                              \
    X(RESET, "connections reset at random", true)                                                  \
    X(PEERS_GONE, "connections of killed processes", true)                                         \
    X(PEERS_DARK, "connections lost with power", true)                                             \
    X(STREAMS_GIVEN_UP, "streams given up by their kernel", true)                                  \
    X(SILENT, "lanes given up for silence", true)                                                  \
    X(GIVEN_UP, "lanes reset for a mutation", true)                                                \
    X(LANES_REPLACED, "lanes taken over by newer", true)                                           \
    X(OLD_LANES, "lanes refused as older", false)                                                  \
    X(AGAIN, "requests sent again", true)                                                          \
    X(LET_GO, "connections let go, all silent", true)                                              \
    X(ANSWERS_DROPPED, "answers to nobody", true)                                                  \
    X(BUSY, "requests answered busy", true)                                                        \
    X(LATE, "requests that lay unread", true)                                                      \
    X(SEGMENTS_SLOW, "segments slow", true)                                                        \
    X(SEGMENTS_CUT, "segments cut off", true)                                                      \
    X(STOPS, "processes stopped", true)                                                            \
    X(ACCEPTS, "connections accepted late", true)                                                  \
    X(KILLS, "kills", true)                                                                        \
    X(POWERS, "power failures", true)                                                              \
    X(WRITES_CUT, "disk writes cut", true)                                                         \
    X(BLOCKS_LOST, "disk blocks lost", true)                                                       \
    X(BLOCKS_TORN, "disk blocks torn", true)                                                       \
    X(DISKS_SLOW, "slow disk operations", true)                                                    \
    X(DISKS_FULL, "disks full", true)                                                              \
    X(NO_SPACE, "answers of no space", true)                                                       \
    X(NAMES_FULL, "metadata disks full", true)                                                     \
    X(NAMES_NO_SPACE, "answers of no space for names", true)                                       \
    X(LATE_CLOSES, "closes put off for space", false)                                              \
    X(BITS_FLIPPED, "bits flipped", true)                                                          \
    X(BITS_FOUND, "answers of damaged data", true)                                                 \
    X(DAMAGE_CUT, "cuts through damaged data", false)                                              \
    X(LOGS_ROT, "bits of logs flipped", true)                                                      \
    X(LOGS_REFUSED, "starts refused for them", true)                                               \
    X(LOGS_TORN, "of them taken for a torn tail", false)                                           \
    X(KEY_ROTATIONS, "members' keys that all came to sign by", true)                               \
    X(KEYS_GONE, "nodes that have the newer one alone", true)                                      \
    X(KEY_NUMBERS, "numbers of keys, as they were renewed", true)                                  \
    X(RENEWALS_REFUSED, "renewals refused, a node was away", false)                                \
    X(CAPABILITIES_CHECKED, "signatures checked", true)                                            \
    X(CAPABILITIES_REFUSED, "capabilities of old keys", true)                                      \
    X(CLOCKS, "clocks skewed", true)                                                               \
    X(PENDING, "PENDING restarts", true)                                                           \
    X(DUPLICATES, "duplicates refused", true)                                                      \
    X(WRITE_COPIES, "copies of writes at work", true)                                              \
    X(PUNCHES, "holes punched or zeroed in chunks", true)                                          \
    X(PROMISES, "promises of space to chunks", true)                                               \
    X(CHECKPOINTS, "checkpoints", true)                                                            \
    X(CHECKPOINTS_CUT, "checkpoints cut", true)                                                    \
    X(FULLS, "targets with several limits full", true)                                             \
    X(FULLS_KILLED, "of these, at a kill", true)                                                   \
    X(LAPS, "laps of rings of records, OSTs", true)                                                \
    X(DATA_LAPS, "laps of rings of data", true)                                                    \
    X(OTHER_LAPS, "laps of rings, others", true)                                                   \
    X(REPLAYS, "replays", true)                                                                    \
    X(REPLAYS_CUT, "replays cut", true)                                                            \
    X(RECORDS_REPLAYED, "records replayed", true)                                                  \
    X(STRAYS, "sets of chunks left to a scrub", true)                                              \
    X(USAGES, "files whose blocks were compared", true)                                            \
    X(USAGES_EXCUSED, "that power at a target excuses", true)                                      \
    X(USAGES_UNSURE, "that nobody has counted yet", false)                                         \
    X(COUNTED, "files whose blocks were asked for", true)                                          \
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
    X(STRAGGLERS, "clients cut off that write on", true)                                           \
    X(STRAGGLERS_TOLD, "files told to others meanwhile", true)                                     \
    X(STRAGGLERS_REFUSED, "writes of theirs refused then", true)                                   \
    X(FENCES, "sessions fenced whose opens were lost", true)                                       \
    X(FENCING_SETTLES, "lengths asked that fence them", true)                                      \
    X(LOSSES_OVER, "losses of a log that were over", true)                                         \
    X(ENDS_OVER, "sizes told as of such a loss", true)                                             \
    X(WRITERS_LEFT, "writers whose close power took, closed", true)                                \
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
