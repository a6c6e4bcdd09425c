/* drive: runs a fuzzer where there is no libFuzzer: drive SECONDS SEED CORPUS-FOLDER.
 * Inputs are those of the corpus, first as they are, then changed at random; the same
 * seed is the same inputs. The input under way stands in the file `input`, its length
 * (8 bytes) before it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { INPUT_MAX = 600, CORPUS_MAX = 1024, HANG_S = 20 };

struct input {
    size_t n;
    uint8_t bytes[INPUT_MAX];
};

static struct input corpus[CORPUS_MAX];
static size_t corpus_ct;
static uint64_t state;

/* xorshift64*. */
static uint64_t draw(uint64_t n)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * UINT64_C(2685821657736338717) >> 11) % n;
}

/* In the order of the names, which is part of the seed. */
static void read_corpus(const char *folder)
{
    struct dirent **names = NULL;
    int n = scandir(folder, &names, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        struct input *to = &corpus[corpus_ct];
        char path[4096];
        FILE *f = NULL;

        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && corpus_ct < CORPUS_MAX)
            f = fopen(path, "r");
        free(names[i]);
        if (f == NULL)
            continue;
        to->n = fread(to->bytes, 1, INPUT_MAX, f);
        corpus_ct += to->n > 0 ? 1 : 0;
        (void)fclose(f);
    }
    free(names);
}

/* Bytes changed, put in, taken out, or the tail of another input. */
static void change(struct input *x)
{
    size_t at = draw(x->n);
    const struct input *other = &corpus[draw(corpus_ct)];
    uint64_t how = draw(5);

    if (how <= 1) {
        x->bytes[at] = draw(3) == 0 ? (uint8_t)draw(8) : (uint8_t)draw(256);
    } else if (how == 2 && x->n < INPUT_MAX) {
        memmove(x->bytes + at + 1, x->bytes + at, x->n++ - at);
        x->bytes[at] = (uint8_t)draw(256);
    } else if (how == 3 && x->n > 1) {
        memmove(x->bytes + at, x->bytes + at + 1, --x->n - at);
    } else if (how == 4 && at < other->n) {
        memcpy(x->bytes + at, other->bytes + at, other->n - at);
        x->n = other->n;
    }
}

static void next(struct input *x, size_t k)
{
    *x = corpus[k < corpus_ct ? k : draw(corpus_ct)];
    for (uint64_t i = k < corpus_ct ? 0 : 1 + draw(12); i > 0; i--)
        change(x);
}

static struct input *open_input(void)
{
    int fd = open("input", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct input *x = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof *x) == 0)
        x = mmap(NULL, sizeof *x, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (x == MAP_FAILED)
        abort();
    (void)close(fd);
    return x;
}

int main(int argc, char **argv)
{
    struct input *x;
    time_t end;
    size_t k = 0;

    if (argc != 4)
        return 2;
    state = strtoull(argv[2], NULL, 10) | 1;
    read_corpus(argv[3]);
    if (corpus_ct == 0)
        return 2;
    x = open_input();
    end = time(NULL) + strtol(argv[1], NULL, 10);
    for (; k < corpus_ct || time(NULL) < end; k++) {
        next(x, k);
        (void)alarm(HANG_S);
        (void)LLVMFuzzerTestOneInput(x->bytes, x->n);
    }
    (void)printf("%zu inputs\n", k);
    return 0;
}
