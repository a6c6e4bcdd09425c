/* pool_keys: the locks that the pool of a test holds just now. */
#include "tests/lib/world.h"

int64_t pool_lock_keys(void)
{
    char command[128], n[32];

    (void)snprintf(command, sizeof command, "KEYS %s[us]*", world.f.prefix);
    pool_redis(world.f.redis_url, n, sizeof n, command);
    return strtoll(n, NULL, 10);
}

bool pool_lock_name(char *name, size_t size)
{
    char command[192], key[256];

    (void)snprintf(command, sizeof command,
                   "EVAL return(redis.call('KEYS',ARGV[1])[1]) 0 %s[us]*",
                   world.f.prefix);
    pool_redis(world.f.redis_url, key, sizeof key, command);
    if (key[0] != '\0')
        (void)snprintf(name, size, "%s", key + strlen(world.f.prefix));
    return key[0] != '\0';
}
