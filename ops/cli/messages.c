/* messages: what messages.txt says of a code. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "message_gen.h"
#include "ops/cli/cli.h"

static const char *text(void)
{
    return (const char *)message_texts[MESSAGE_MESSAGES].text;
}

/* The entry of a code, of which small letters are as good; NULL: there is none. */
static const char *find(const char *code)
{
    char head[16];

    (void)snprintf(head, sizeof head, "\n%.10s ", code);
    for (char *p = head; *p != '\0'; p++)
        *p = (char)toupper((unsigned char)*p);
    return strstr(text(), head);
}

bool cli_is_code(const char *word)
{
    return strncasecmp(word, "LL-", 3) == 0;
}

bool cli_explain(const char *code)
{
    const char *entry = find(code), *end;

    if (entry == NULL)
        return false;
    entry++;
    end = strstr(entry, "\n\n");
    (void)printf("%.*s\n", (int)(end != NULL ? end - entry : (long)strlen(entry) - 1),
                 entry);
    return true;
}

void cli_list_codes(void)
{
    for (const char *p = strstr(text(), "\nLL-"); p != NULL; p = strstr(p + 1, "\nLL-"))
        (void)printf("%.*s\n", (int)strcspn(p + 1, "\n"), p + 1);
}
