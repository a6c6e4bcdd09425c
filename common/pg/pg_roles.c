/* pg_roles: the roles of a connection. Texts of the program name them with the usual
 * prefix, as ledgerlock_worker; a connection with another prefix sends them with that,
 * since roles belong to a whole server and a server may have several shops. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/pg/pg_private.h"

static const char usual[] = PG_ROLE_PREFIX "_";

static bool is_of_name(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '_';
}

/* True if all of a role's name begins at p, and not the name of something else. */
static bool is_role(const char *text, const char *p)
{
    static const char *const duties[] = {"worker",  "shop",   "cashier", "warehouse",
                                         "support", "reader", "owner",   "migrate"};
    const char *duty = p + sizeof usual - 1;
    size_t i = 0;

    if (p > text && is_of_name(p[-1]))
        return false;
    while (i < sizeof duties / sizeof duties[0] &&
           (strncmp(duty, duties[i], strlen(duties[i])) != 0 ||
            is_of_name(duty[strlen(duties[i])])))
        i++;
    return i < sizeof duties / sizeof duties[0];
}

/* The next role at or behind p; NULL: there is none. */
static const char *find_role(const char *text, const char *p)
{
    while ((p = strstr(p, usual)) != NULL && !is_role(text, p))
        p += sizeof usual - 1;
    return p;
}

/* Copies what fits. */
static size_t put(char *out, size_t size, size_t at, const char *text, size_t n)
{
    for (size_t i = 0; i < n && at + i + 1 < size; i++)
        out[at + i] = text[i];
    return at + n;
}

size_t pg_name_roles(const char *prefix, const char *text, char *out, size_t size)
{
    const char *p = text, *role;
    size_t n = 0;

    while ((role = find_role(text, p)) != NULL) {
        n = put(out, size, n, p, (size_t)(role - p));
        n = put(out, size, n, prefix, strlen(prefix));
        p = role + sizeof PG_ROLE_PREFIX - 1;
    }
    n = put(out, size, n, p, strlen(p));
    if (size > 0)
        out[n < size ? n : size - 1] = '\0';
    return n;
}

const char *pg_named(struct pg *pg, const char *text)
{
    size_t size;

    if (strcmp(pg->role_prefix, PG_ROLE_PREFIX) == 0 || find_role(text, text) == NULL)
        return text;
    size = pg_name_roles(pg->role_prefix, text, NULL, 0) + 1;
    free(pg->named);
    pg->named = malloc(size);
    if (pg->named != NULL)
        (void)pg_name_roles(pg->role_prefix, text, pg->named, size);
    return pg->named;
}
