/* gateway_key: the address and the secret key of the gateway, as the settings name
 * them. */
#include "worker/jobs/gateway_key.h"

#include <stdio.h>
#include <string.h>

/* Without TLS the key would be read by everybody on the way. */
static bool is_near(const char *url)
{
    static const char *const hosts[] = {"localhost", "127.", "[::1]", "10.",
                                        "192.168."};
    size_t n = strcspn(url, ":/");

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        if (strncmp(url, hosts[i], strlen(hosts[i])) == 0)
            return true;
    }
    return memchr(url, '.', n) == NULL && n > 0; /* the name of a container */
}

static int check_url(const struct config *c, struct err *e)
{
    const char *url = c->gateway_url;

    if (url[0] == '\0')
        (void)err_set(e, ERR_CONFIG,
                      "LL-2019 payments need gateway.url, and gateway.key_file");
    else if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
        (void)err_set(e, ERR_CONFIG,
                      "LL-2019 gateway.url must begin with https://, not \"%.60s\"",
                      url);
    else if (strncmp(url, "http://", 7) == 0 && !is_near(url + 7))
        (void)err_set(
            e, ERR_CONFIG,
            "LL-2019 gateway.url is http://, which shows the key to all on the "
            "way: use https:// but on this machine or a private network");
    return e->code != 0 ? config_refuse(c, "gateway.url", e) : 0;
}

static int read_key(struct gateway_key *k, const struct config *c, struct err *e)
{
    int64_t stamp = secret_stamp(c->gateway_key_file); /* before it is read */
    char key[SECRET_SIZE];

    if (c->gateway_key_file[0] == '\0')
        (void)err_set(
            e, ERR_CONFIG,
            "LL-2019 payments need gateway.key_file: a file with the secret key");
    else if (secret_read(c->gateway_key_file, key, e) == 0 &&
             secret_check_mode(c->gateway_key_file, e) == 0) {
        if (strncmp(key, "sk_live_", 8) == 0 && strcmp(c->gateway_live, "true") != 0)
            (void)err_set(e, ERR_CONFIG,
                          "LL-2019 the key in %s is of the live mode, which takes real "
                          "money: set gateway.live = \"true\" if that is meant",
                          c->gateway_key_file);
        else
            (void)snprintf(k->header, sizeof k->header, "Authorization: Bearer %s",
                           key);
        k->stamp = stamp;
        secret_wipe(key, sizeof key);
    }
    return e->code != 0 ? config_refuse(c, "gateway.key_file", e) : 0;
}

int gateway_key_open(struct gateway_key *k, const struct config *c, struct err *e)
{
    *k = (struct gateway_key){0};
    return check_url(c, e) != 0 || read_key(k, c, e) != 0 ? (int)e->code : 0;
}

void gateway_key_renew(struct gateway_key *k, const struct config *c)
{
    struct err ignored = {0};
    int64_t stamp = secret_stamp(c->gateway_key_file);

    if (stamp != 0 && stamp != k->stamp)
        (void)!read_key(k, c, &ignored);
}

void gateway_key_wipe(struct gateway_key *k)
{
    secret_wipe(k->header, sizeof k->header);
}
