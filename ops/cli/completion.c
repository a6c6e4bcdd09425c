/* completion: what bash loads to complete a command line: tables of verbs, flags and
 * settings, and a function that looks there. A flag that takes a value ends with =. */
#include <stdio.h>
#include <string.h>

#include "ops/cli/cli.h"

static void print_verb(const struct cli_verb *verb)
{
    (void)printf("  flags[%s]=\"--help%s", verb->name,
                 verb->without_config ? "" : "$settings");
    for (const struct cli_flag *f = verb->flags; f != NULL && f->name != NULL; f++)
        (void)printf(" --%s%s", f->name, f->type == CLI_BOOL ? "" : "=");
    (void)printf("\" words[%s]=\"%s\"\n", verb->name,
                 strcmp(verb->name, "help") == 0 ? "$verbs codes settings"
                 : verb->words != NULL           ? verb->words
                                                 : "");
}

static void print_tables(void)
{
    (void)printf("  local verbs='");
    for (size_t i = 0; i < cli_program->verb_ct; i++)
        (void)printf("%s ", cli_program->verbs[i]->name);
    (void)printf("' settings=' --config=");
    for (size_t i = 0; i < config_option_ct; i++)
        (void)printf(" --%s=", config_options[i].flag);
    (void)printf("' letters='-c=");
    for (size_t i = 0; i < config_option_ct; i++) {
        if (config_options[i].letter != 0)
            (void)printf(" -%c=", config_options[i].letter);
    }
    (void)printf("'\n  local -A flags words choices\n");
    for (size_t i = 0; i < cli_program->verb_ct; i++)
        print_verb(cli_program->verbs[i]);
    for (size_t i = 0; i < config_option_ct; i++) {
        if (config_options[i].type == OPTION_CHOICE)
            (void)printf("  choices[--%s]='%s'\n", config_options[i].flag,
                         config_options[i].choices);
    }
}

void cli_completion(void)
{
    const char *name = cli_program->name;

    (void)printf(
        "# bash completion of %s, printed by: %s help --completion bash\n"
        "_%s() {\n"
        "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "  local verb=${COMP_WORDS[1]:--} offer=\n",
        name, name, name);
    print_tables();
    (void)printf(
        "  COMPREPLY=()\n"
        "  # --flag=value comes as three words.\n"
        "  if [ \"$word\" = = ]; then\n"
        "    word=\n"
        "  elif [ \"$before\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
        "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "  fi\n"
        "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
        "    offer=$verbs\n"
        "  elif [ -n \"${choices[${before:--}]-}\" ]; then\n"
        "    offer=${choices[$before]//|/ }\n"
        "  elif [[ \" ${flags[$verb]-} $letters \" = *\" $before= \"* ]]; then\n"
        "    return\n"
        "  elif [ \"${word:0:1}\" = - ]; then\n"
        "    offer=${flags[$verb]-}\n"
        "    offer=${offer//=/}\n"
        "  elif [ \"$COMP_CWORD\" = 2 ]; then\n"
        "    offer=${words[$verb]-}\n"
        "  fi\n"
        "  # A flag of a verb may hide one of the settings.\n"
        "  mapfile -t COMPREPLY < <(compgen -W \"$offer\" -- \"$word\" | sort -u)\n"
        "}\n"
        "complete -o default -F _%s %s\n",
        name, name);
}
