/* What is counted of a seed: enumerator, text, whether TOTALS_LEAST is the least of a long run. */
#pragma once
#include "totals_cluster.h"

#define TOTALS(X) TOTALS_WORK(X) TOTALS_CLUSTER(X)

/* Of operations, the network, disks and logs. */
#define TOTALS_WORK(X)                                                                             \
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
    X(LAYOUTS, "layouts of files set", true)                                                       \
    X(LAYOUTS_OPEN, "of these, of open files", true)                                               \
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
    X(COUNTED, "files whose blocks were asked for", true)
