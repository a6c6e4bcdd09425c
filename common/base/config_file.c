/* config: settings from a libconfig file, and passwords from files of their own. */
#include <errno.h>
#include <libconfig.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/config.h"
#include "common/base/secret.h"

/* The file that the setting stands in: `path`, or a file that it includes. */
static const char *file_of(const config_setting_t *s, const char *path)
{
    const char *file = config_setting_source_file(s);

    return file != NULL ? file : path;
}

static int set_from_file(struct config *c,
                         size_t row,
                         const config_setting_t *s,
                         const char *path,
                         const char *where,
                         struct err *e)
{
    const struct config_option *o = &config_options[row];
    int type = config_setting_type(s);
    char number[32];
    const char *text;

    if (o->type == OPTION_INT) {
        if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
            return err_set(e, ERR_CONFIG,
                           "LL-2008 %s: %s must be a whole number without quotes",
                           where, o->key);
        (void)snprintf(number, sizeof number, "%lld", config_setting_get_int64(s));
        return config_set(c, row, number, ORIGIN_FILE, where, e);
    }
    if (type != CONFIG_TYPE_STRING)
        return err_set(e, ERR_CONFIG, "LL-2008 %s: %s must be text in double quotes",
                       where, o->key);
    text = config_setting_get_string(s);
    if ((o->flags & OPTION_SECRET) != 0 && config_has_secret(text) &&
        secret_check_mode(file_of(s, path), e) != 0)
        return (int)e->code;
    return config_set(c, row, text, ORIGIN_FILE, where, e);
}

static void
place_of(const config_setting_t *s, const char *path, char *where, size_t size)
{
    (void)snprintf(where, size, "%s:%u", file_of(s, path),
                   config_setting_source_line(s));
}

static int read_setting(struct config *c,
                        const config_setting_t *s,
                        const char *key,
                        const char *path,
                        struct err *e)
{
    char where[320];

    place_of(s, path, where, sizeof where);
    for (size_t row = 0; row < config_option_ct; row++) {
        if (strcmp(config_options[row].key, key) == 0)
            return set_from_file(c, row, s, path, where, e);
    }
    return config_unknown(e, where, key, false);
}

/* A group, of the file or (name: "pool.billing") of another group. */
static int read_group(struct config *c,
                      const config_setting_t *g,
                      const char *name,
                      const char *path,
                      struct err *e)
{
    char where[320], inner[CONFIG_TEXT];

    place_of(g, path, where, sizeof where);
    if (config_setting_type(g) != CONFIG_TYPE_GROUP)
        return err_set(
            e, ERR_CONFIG,
            "LL-2009 %s: \"%s\" stands outside a group; write group: { key = value; };",
            where, name);
    for (int i = 0; i < config_setting_length(g); i++) {
        const config_setting_t *s = config_setting_get_elem(g, (unsigned)i);

        (void)snprintf(inner, sizeof inner, "%s.%s", name, config_setting_name(s));
        if ((config_setting_type(s) == CONFIG_TYPE_GROUP
                 ? read_group(c, s, inner, path, e)
                 : read_setting(c, s, inner, path, e)) != 0)
            return (int)e->code;
    }
    return config_setting_length(g) == 0 ? config_unknown(e, where, name, false) : 0;
}

static int read_tree(struct config *c, config_t *tree, const char *path, struct err *e)
{
    const config_setting_t *root;

    if (config_read_file(tree, path) != CONFIG_TRUE) {
        const char *file = config_error_file(tree);

        if (config_error_type(tree) == CONFIG_ERR_FILE_IO)
            return err_set(e, ERR_CONFIG, "LL-2010 cannot read configuration file %s",
                           path);
        return err_set(e, ERR_CONFIG, "LL-2011 %s:%d: %s", file != NULL ? file : path,
                       config_error_line(tree), config_error_text(tree));
    }
    root = config_root_setting(tree);
    for (int i = 0; i < config_setting_length(root); i++) {
        const config_setting_t *g = config_setting_get_elem(root, (unsigned)i);

        if (read_group(c, g, config_setting_name(g), path, e) != 0)
            return (int)e->code;
    }
    return 0;
}

int config_load_file(struct config *c, const char *path, struct err *e)
{
    struct stat st;
    config_t tree;
    int code;

    if (stat(path, &st) != 0)
        return err_set(e, ERR_CONFIG, "LL-2010 cannot read configuration file %s: %s",
                       path, strerror(errno));
    if (S_ISDIR(st.st_mode)) /* libconfig's scanner would end the process */
        return err_set(e, ERR_CONFIG, "LL-2010 configuration file %s is a folder",
                       path);
    config_init(&tree);
    code = read_tree(c, &tree, path, e);
    config_destroy(&tree);
    return code;
}
