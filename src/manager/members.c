/* The table of members. */
#include "manager/members.h"
#include "base/err.h"
#include <stdlib.h>

int members_init(struct members *members, uint32_t count_max) {
    uint32_t bucket_count = 16;

    while (bucket_count < count_max) {
        bucket_count *= 2;
    }
    *members = (struct members){.bucket_mask = bucket_count - 1, .count_max = count_max};
    list_init(&members->all);
    members->buckets = calloc(bucket_count, sizeof(struct member *));
    members->memory = calloc(count_max, sizeof *members->memory);
    return members->buckets && members->memory ? 0 : -ERR_NO_MEMORY;
}

void members_deinit(struct members *members) {
    free(members->buckets);
    free(members->memory);
    *members = (struct members){0};
}

/* Numbers are given in order, so their lowest bits spread well. */
static struct member **bucket_of(const struct members *members, uint64_t id) {
    return &members->buckets[id & members->bucket_mask];
}

struct member *members_find(const struct members *members, uint64_t id) {
    struct member *member = *bucket_of(members, id);

    while (member && member->id != id) {
        member = member->next;
    }
    return member;
}

struct member *members_add(struct members *members, uint64_t id) {
    struct member **bucket = bucket_of(members, id);
    struct member *member = members->free;

    if (member) {
        members->free = member->next;
    } else if (members->used < members->count_max) {
        member = &members->memory[members->used++];
    } else {
        return NULL;
    }
    *member = (struct member){.next = *bucket, .id = id};
    list_init(&member->enders);
    list_push_back(&members->all, &member->node);
    *bucket = member;
    members->count++;
    return member;
}

void members_remove(struct members *members, struct member *member) {
    struct member **link = bucket_of(members, member->id);

    while (*link != member) {
        link = &(*link)->next;
    }
    *link = member->next;
    list_remove(&member->node);
    member->next = members->free;
    members->free = member;
    members->count--;
}
