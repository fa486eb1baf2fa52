/* Blocks of 4 KiB of a file's chunks, as writers tell of them (docs/internals/data.md). */
#pragma once

/* What a settle says of them; 0: an older client says nothing. BLOCKS_UNSURE: not all that it has
 * written was answered, so once nobody writes any more the storage targets are asked. */
enum blocks_told { BLOCKS_SUM = 1, BLOCKS_UNSURE = 2 };
