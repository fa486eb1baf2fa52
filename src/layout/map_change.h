/* What a version of the map has that the one before had not, as bytes: some hundred where the map
 * has a hundred thousand.
 *
 *     manager: version n, version n + 1 --encode--> change      member, mount: n --apply--> n + 1
 *
 * A change names the version that it begins with and has the CRC of the whole map that comes of
 * it, so it makes that very map or is refused: then the map is to be fetched as a whole. Several,
 * one behind the other, are applied in one go. */
#pragma once
#include "layout/cluster_map.h"

/* Changes of one answer, at most. */
enum { MAP_CHANGES_BYTES_MAX = 65536 };

/* Appended to out. -ERR_TOO_SMALL: it has no room for it; -ERR_NOT_SUPPORTED: something of `from`
 * is gone in `to`, or stands elsewhere, which no change can say. out is untouched then. */
MUST_CHECK int cluster_map_change_encode(const struct cluster_map *from,
                                         const struct cluster_map *to, struct buffer *out);
/* Any bytes may come; the map is the newest of them then. -ERR_STALE_MAP: of another map than this
 * one; -ERR_MALFORMED, -ERR_CORRUPT, -ERR_NEWER_FORMAT. Where it fails the map is undefined. */
MUST_CHECK int cluster_map_changes_apply(struct cluster_map *map, struct bytes changes);
/* Of all of the map, as its whole encoding ends with. */
uint32_t cluster_map_crc(const struct cluster_map *map);
