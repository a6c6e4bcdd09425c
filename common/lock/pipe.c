/* pipe: several commands to one server in one round trip. */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "common/lock/internal.h"

enum { MAX_WORDS = 8 };

static bool make_room(struct ll_pipe *p, size_t size)
{
    size_t room = p->room == 0 ? 1024 : p->room;
    char *bigger;

    while (room < p->size + size)
        room *= 2;
    if (room == p->room)
        return true;
    bigger = realloc(p->text, room);
    if (bigger == NULL)
        return false;
    p->text = bigger;
    p->room = room;
    return true;
}

void ll_pipe_add(struct ll_pipe *p, int argc, const char **argv, const size_t *lens)
{
    if (!make_room(p, ll_command_room(argc, lens))) {
        p->is_short = true;
        return;
    }
    p->size += ll_write_command(p->text + p->size, argc, argv, lens);
    p->n++;
}

void ll_pipe_words(struct ll_pipe *p, int argc, const char **argv)
{
    size_t lens[MAX_WORDS];

    for (int i = 0; i < argc; i++)
        lens[i] = strlen(argv[i]);
    ll_pipe_add(p, argc, argv, lens);
}

static void free_replies(struct ll_pipe *p)
{
    for (size_t i = 0; i < p->reply_ct; i++)
        freeReplyObject(p->replies[i]);
    free(p->replies);
    p->replies = NULL;
    p->reply_ct = 0;
}

int ll_pipe_run(struct ll_client *c,
                struct ll_node *node,
                struct ll_pipe *p,
                int64_t deadline_ms)
{
    struct ll_call call = {
        .node = node, .command = p->text, .size = p->size, .wanted = p->n};

    free_replies(p);
    if (!p->is_short)
        p->replies = calloc(p->n + 1, sizeof *p->replies);
    if (p->replies == NULL)
        return ll_fail(c, LL_E_NOMEM, "out of memory");
    call.replies = p->replies;
    ll_exchange(c, &call, 1, deadline_ms);
    p->reply_ct = call.reply_ct;
    return call.code;
}

void ll_pipe_clear(struct ll_pipe *p)
{
    free_replies(p);
    p->size = p->n = 0;
    p->is_short = false;
}

void ll_pipe_free(struct ll_pipe *p)
{
    free_replies(p);
    free(p->text);
    *p = (struct ll_pipe){0};
}
