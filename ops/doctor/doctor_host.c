/* doctor_host: files, limits and ports of this machine. */
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops/cli/cli.h"
#include "ops/doctor/doctor.h"
#include "ops/http/companion_http.h"

enum { FILES_MIN = 256 };

/* The configuration decides which database is charged. */
static void check_configuration(struct doctor *d, struct finding *f)
{
    const char *path = cli_config_path();
    struct stat st;

    (void)d;
    if (path == NULL || stat(path, &st) != 0)
        find(f, CHECK_OK, NULL,
             "none is read: neither --config nor LEDGERLOCK_CONFIG names a file");
    else if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        find(f, CHECK_FAIL, "chmod go-w", "%s may be written by others", path);
    else
        find(f, CHECK_OK, NULL, "%s is written by its owner alone", path);
}

static void check_files(struct doctor *d, struct finding *f)
{
    struct rlimit limit = {0};

    (void)d;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    find(f, limit.rlim_cur < FILES_MIN ? CHECK_FAIL : CHECK_OK, "ulimit -n 1024",
         "%" PRIu64 " files may be open", (uint64_t)limit.rlim_cur);
}

static void check_port(struct doctor *d, struct finding *f)
{
    struct err e = {0};
    int fd;

    if (d->config->http_listen[0] == '\0') {
        find(f, CHECK_OK, NULL, "http.listen is empty: no page is served");
        return;
    }
    if (companion_http.open(d->config, &fd, &e) != 0) {
        find(f, CHECK_WARN, "nothing, if it is the pool that runs", "%s", e.msg);
        return;
    }
    (void)close(fd);
    find(f, CHECK_OK, NULL, "%s is free", d->config->http_listen);
}

const struct check checks_of_host[] = {
    {"configuration_file", check_configuration},
    {"open_files", check_files},
    {"http_port", check_port},
    {NULL, NULL},
};
