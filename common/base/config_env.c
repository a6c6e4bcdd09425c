/* config: settings from the environment: one variable for each option. */
#include <string.h>

#include "common/base/config.h"

extern char **environ;

enum { VARIABLE = 64 };

static int
read_variable(struct config *c, const char *name, const char *value, struct err *e)
{
    char where[VARIABLE + 16];

    (void)snprintf(where, sizeof where, "environment %s", name);
    for (size_t row = 0; row < config_option_ct; row++) {
        if (strcmp(config_options[row].env, name) == 0)
            return config_set(c, row, value, ORIGIN_ENV, where, e);
    }
    return config_unknown(e, "environment", name, true);
}

int config_load_env(struct config *c, struct err *e)
{
    for (char **p = environ; p != NULL && *p != NULL; p++) {
        const char *equals = strchr(*p, '=');
        char name[VARIABLE];

        if (strncmp(*p, "LEDGERLOCK_", strlen("LEDGERLOCK_")) != 0 || equals == NULL)
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - *p), *p);
        if (strcmp(name, "LEDGERLOCK_CONFIG") != 0 &&
            read_variable(c, name, equals + 1, e) != 0)
            return (int)e->code;
    }
    return 0;
}
