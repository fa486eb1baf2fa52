/* An outside in memory for tests of one actor: files with a durable and a current content, shared
 * regions, completions that come only when the test pumps. One env at a time uses a world; after a
 * kill or a power cut memory_env_restart gives the world to the next life. */
#pragma once
#include "base/prng.h"
#include "env/env.h"

struct memory_env;

MUST_CHECK int memory_env_new(uint64_t seed, struct memory_env **ret_world);
void memory_env_free(struct memory_env *world);
struct env *memory_env_env(struct memory_env *world);

/* Completes up to `count` of what is in flight, in random order; answers how many. */
size_t memory_env_pump(struct memory_env *world, size_t count);
size_t memory_env_pending(const struct memory_env *world);
void memory_env_advance(struct memory_env *world, uint64_t ns);

/* The process dies: what was in flight may have reached its file, block by block; regions stay. */
void memory_env_kill(struct memory_env *world);
/* The process dies, and its writes stay with the medium: each comes whole, when somebody waits for
 * it by an ALLOCATE on its file, or at the latest by memory_env_land. */
void memory_env_kill_late(struct memory_env *world);
void memory_env_land(struct memory_env *world);
/* The medium forgets what was not flushed; regions stay. */
void memory_env_forget(struct memory_env *world);
/* The machine dies: regions go, blocks that were not synced are kept, lost or torn at random. */
void memory_env_power(struct memory_env *world);

/* After `operations` more disk operations everything answers -ERR_CLOSED without effect, until the
 * next kill or power cut. UINT64_MAX: never. memory_env_is_crashed tells. */
void memory_env_crash_after(struct memory_env *world, uint64_t operations);
bool memory_env_is_crashed(const struct memory_env *world);
/* No file may grow beyond this, all taken together. */
void memory_env_capacity(struct memory_env *world, uint64_t bytes);
/* Flips one bit of a file's current and durable content. -ERR_NOT_FOUND. */
MUST_CHECK int memory_env_flip(struct memory_env *world, const char *path, uint64_t offset);
/* Every ALLOCATE answers -ERR_NO_SPACE from now on, also where nothing is to be allocated. */
void memory_env_refuse_space(struct memory_env *world);
/* So many flushes fail from now on. */
void memory_env_fail_flushes(struct memory_env *world, unsigned count);
/* The block of the file that this offset lies in can't be read until it is written. */
void memory_env_block_lose(struct memory_env *world, const char *path, uint64_t offset);
/* Cuts the file to the size, or makes it longer. */
void memory_env_resize(struct memory_env *world, const char *path, uint64_t size);
/* Flushes since the world was made. */
unsigned memory_env_flushes(const struct memory_env *world);
uint64_t memory_env_size(const struct memory_env *world, const char *path);
