/* A session of libshoal in a process of its own, whose calls go to the daemon of a cluster: on this
 * machine over the socket in its directory (local_gate.h), or anywhere by TCP, with a key. A daemon
 * that dies and comes back is a pause.
 *
 * Thread: open, stop and close on one thread, which waits. Memory: the client's. */
#pragma once
#include "client/client.h"
#include "env/env_linux.h"
#include "keys/key_file.h"
#include "rpc/lane.h"

struct remote_client;

enum { REMOTE_ADDRESSES_MAX = LANE_ADDRESSES_MAX - 1 }; /* and the one that the map has */

struct remote_client_options {
    const char *directory; /* of a node, absolute: asked there when no address is given; or NULL */
    const char *name;      /* what the cluster is called in lines */
    struct address addresses[REMOTE_ADDRESSES_MAX];
    uint32_t address_count;
    const struct key_file *key; /* for the addresses */
    enum link_encryption encryption;
    struct node_id node;  /* whose directory it is; 0: of none */
    const char *origin;   /* of the session: with node, names the predecessor to evict */
    uint64_t patience_ns; /* that a request waits for a daemon that is away; 0: 120 s */
    uint64_t begin_ns;    /* that the first answer is waited for; 0: as patience */
    void (*log)(const char *line);
    /* Each time that no session could be begun, and it is tried again: why. NULL: nobody asks. */
    void (*waits)(void *context, int result);
    void *waits_context;
};

/* Begins the session. On failure problem has one line. */
MUST_CHECK int remote_client_open(const struct remote_client_options *options,
                                  struct remote_client **ret_client, char problem[512]);
/* Ends the session, unless nobody answers for as long; then the cluster evicts it. No request may
 * be in flight. */
MUST_CHECK int remote_client_stop(struct remote_client *client, uint64_t timeout_ns);
/* Frees; takes NULL. */
void remote_client_close(struct remote_client *client);

struct shoal_client *remote_client_client(struct remote_client *client);
struct env *remote_client_env(struct remote_client *client);

/* For threads that make requests, as hooks with the remote client as context. */
void remote_client_thread_enter(void *client);
void remote_client_thread_leave(void *client);
bool remote_client_thread_idle(void *client);
bool remote_client_thread_needed(void *client);
