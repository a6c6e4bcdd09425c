/* counter FILE [URL]: adds one to the number in FILE, however many of us run at once.
 * FILE keeps "number token": who slept through his lease comes with an old token. */
#include <ledgerlock/lock.h>
#include <stdio.h>

static int add_one(struct ll_client *c, struct ll_lock *l, FILE *f)
{
    int code = ll_acquire_wait(l, &(struct ll_key){"count", 5}, 1, LL_ALL, 10000, 5000);
    long long number = 0, token = 0;

    rewind(f);
    if (fscanf(f, "%lld %lld", &number, &token) != 2)
        number = token = 0;
    if (code == LL_E_EPOCH && /* Redis is new or lost its counter: above all tokens */
        ll_install_epoch(c, (token >> 40) + 1, &(int64_t){0}) == LL_OK)
        return add_one(c, l, f);
    if (code != LL_OK)
        return code;
    if (token >= ll_token(l) || !ll_valid(l, 1000)) /* before the effect, not after */
        return LL_LOST;
    rewind(f);
    if (fprintf(f, "%lld %lld\n", number + 1, (long long)ll_token(l)) > 0)
        printf("%lld, token %lld\n", number + 1, (long long)ll_token(l));
    return ferror(f) ? LL_E_INVAL : ll_release(l); /* LL_GONE: it was lost meanwhile */
}

int main(int argc, char **argv)
{
    struct ll_options o = {.size = sizeof o, .url = argc > 2 ? argv[2] : NULL};
    FILE *f = argc > 1 ? fopen(argv[1], "r+") : NULL;
    char why[160] = "usage: counter FILE [URL]";
    struct ll_client *c = NULL;
    struct ll_lock *l = f && !ll_open(&c, &o, why, sizeof why) ? ll_new(c) : NULL;
    int code = l && !setvbuf(f, NULL, _IONBF, 0) ? add_one(c, l, f) : LL_E_INVAL;
    if (code != LL_OK)
        fprintf(stderr, "%s %s\n", l ? ll_strerror(code) : why, c ? ll_error(c) : "");
    ll_free(l);
    ll_close(c);
    return code == LL_OK ? 0 : 1;
}
