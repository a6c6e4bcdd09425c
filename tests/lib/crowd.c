/* crowd: starts processes and waits for them. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/lib/crowd.h"

#include <sys/mman.h>

void *crowd_memory(size_t size)
{
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED);
    return memory;
}

void crowd_start(pid_t *pids, int n, int (*work)(int i, void *arg), void *arg)
{
    (void)fflush(NULL);
    for (int i = 0; i < n; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(work(i, arg));
    }
}

void crowd_join(const pid_t *pids, int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(fixture_reap(pids[i], CROWD_SECONDS), 0);
}

void crowd_run(int n, int (*work)(int i, void *arg), void *arg)
{
    pid_t pids[CROWD_MOST];

    assert_true(n <= CROWD_MOST);
    crowd_start(pids, n, work, arg);
    crowd_join(pids, n);
}
