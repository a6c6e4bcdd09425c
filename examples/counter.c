/* counter FILE [URL]: adds one to the number in FILE, however many of us run at once.
 * FILE keeps "number token": who slept through his lease comes with an old token. */
#include <ledgerlock/lock.h>
#include <stdio.h>

static int add_one(const struct ll_lock *l, FILE *f, long long number, long long token)
{
    if (token >= ll_token(l) || !ll_valid(l, 1000)) /* before the effect, not after */
        return LL_LOST;
    rewind(f);
    (void)fprintf(f, "%lld %lld\n", number + 1, (long long)ll_token(l));
    (void)printf("%lld, token %lld\n", number + 1, (long long)ll_token(l));
    return fflush(f) == 0 ? LL_OK : LL_E_INVAL;
}

static int turn(struct ll_client *c, struct ll_lock *l, FILE *f)
{
    const struct ll_key key = {"counter", 7};
    long long number = 0, token = 0;
    int64_t epoch;
    int released, code = ll_acquire_wait(l, &key, 1, LL_ALL, 10000, 5000);

    rewind(f);
    if (fscanf(f, "%lld %lld", &number, &token) != 2)
        number = token = 0;
    if (code == LL_E_EPOCH) { /* Redis is new or lost its counter: above all tokens */
        code = ll_install_epoch(c, (token >> 40) + 1, &epoch);
        return code == LL_OK ? turn(c, l, f) : code;
    }
    if (code != LL_OK)
        return code;
    code = add_one(l, f, number, token);
    released = ll_release(l); /* LL_GONE, LL_NOT_OWNER: it was lost meanwhile */
    return code != LL_OK ? code : released;
}

int main(int argc, char **argv)
{
    struct ll_options o = {.size = sizeof o, .url = argc > 2 ? argv[2] : NULL};
    char why[160] = "usage: counter FILE [URL]";
    struct ll_client *c = NULL;
    FILE *f = argc > 1 ? fopen(argv[1], "r+") : NULL;
    int code = LL_E_INVAL;

    if (f != NULL)
        (void)setvbuf(f, NULL, _IONBF, 0); /* others write it too */
    if (f != NULL && (code = ll_open(&c, &o, why, sizeof why)) == LL_OK) {
        struct ll_lock *l = ll_new(c);

        code = l == NULL ? LL_E_NOMEM : turn(c, l, f);
        (void)snprintf(why, sizeof why, "%s (%s)", ll_strerror(code), ll_error(c));
        ll_free(l);
        ll_close(c);
    }
    if (code != LL_OK)
        (void)fprintf(stderr, "counter: %s\n", why);
    return code == LL_OK ? 0 : 1;
}
