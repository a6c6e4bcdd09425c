/* completion: what bash loads to complete a command line, printed from the tables of
 * verbs, flags and settings. */
#include <stdio.h>
#include <string.h>

#include "worker/cli/cli.h"

/* The value of a flag of a verb may be anything, a file for one. */
static void print_verb(const struct cli_verb *verb)
{
    (void)printf("  %s)\n    flags='--help", verb->name);
    for (const struct cli_flag *f = verb->flags; f != NULL && f->name != NULL; f++)
        (void)printf(" --%s", f->name);
    (void)printf("'\n");
    if (!verb->without_config)
        (void)printf("    flags+=\" $settings\"\n");
    if (strcmp(verb->name, "help") == 0)
        (void)printf("    words=\"$verbs codes\"\n");
    else if (verb->words != NULL)
        (void)printf("    words='%s'\n", verb->words);
    (void)printf("    ;;\n");
}

static void print_choices(const struct config_option *o)
{
    (void)printf("  --%s) choices='", o->flag);
    for (const char *p = o->choices; *p != '\0'; p++)
        (void)putchar(*p == '|' ? ' ' : *p);
    (void)printf("' ;;\n");
}

/* The flags whose next word is a value: then bash offers files. */
static void print_valued(const struct cli_verb *verb)
{
    for (const struct cli_flag *f = verb->flags; f != NULL && f->name != NULL; f++) {
        if (f->type != CLI_BOOL)
            (void)printf("  %s/--%s) return ;;\n", verb->name, f->name);
    }
}

static void print_tables(void)
{
    (void)printf("  verbs='");
    for (size_t i = 0; i < cli_program->verb_ct; i++)
        (void)printf("%s%s", i > 0 ? " " : "", cli_program->verbs[i]->name);
    (void)printf("'\n  settings='--config");
    for (size_t i = 0; i < config_option_ct; i++)
        (void)printf(" --%s", config_options[i].flag);
    (void)printf("'\n  letters='-c");
    for (size_t i = 0; i < config_option_ct; i++) {
        if (config_options[i].letter != 0)
            (void)printf(" -%c", config_options[i].letter);
    }
    (void)printf("'\n");
}

static void print_values(void)
{
    (void)printf("  case $before in\n");
    for (size_t i = 0; i < config_option_ct; i++) {
        if (config_options[i].type == OPTION_CHOICE)
            print_choices(&config_options[i]);
    }
    (void)printf("  esac\n"
                 "  if [ -n \"$choices\" ]; then\n"
                 "    mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$word\")\n"
                 "    return\n"
                 "  fi\n"
                 "  case $verb/$before in\n");
    for (size_t i = 0; i < cli_program->verb_ct; i++)
        print_valued(cli_program->verbs[i]);
    (void)printf(
        "  esac\n"
        "  case \" $settings $letters \" in *\" $before \"*) return ;; esac\n");
}

void cli_completion(void)
{
    const char *name = cli_program->name;

    (void)printf(
        "# bash completion of %s, printed by: %s help --completion bash\n"
        "_%s() {\n"
        "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "  local verb=${COMP_WORDS[1]} verbs settings letters flags='' words='' choices=''\n"
        "  COMPREPLY=()\n"
        "  # --flag=value comes as three words.\n"
        "  if [ \"$word\" = = ]; then\n"
        "    word=\n"
        "  elif [ \"$before\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
        "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "  fi\n",
        name, name, name);
    print_tables();
    (void)printf("  if [ \"$COMP_CWORD\" = 1 ]; then\n"
                 "    mapfile -t COMPREPLY < <(compgen -W \"$verbs\" -- \"$word\")\n"
                 "    return\n"
                 "  fi\n");
    print_values();
    (void)printf("  case $verb in\n");
    for (size_t i = 0; i < cli_program->verb_ct; i++)
        print_verb(cli_program->verbs[i]);
    (void)printf(
        "  esac\n"
        "  if [ \"${word:0:1}\" = - ]; then\n"
        "    words=$flags\n"
        "  elif [ \"$COMP_CWORD\" != 2 ]; then\n"
        "    words=\n"
        "  fi\n"
        "  # A flag of a verb may hide one of the settings.\n"
        "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\" | sort -u)\n"
        "}\n"
        "complete -o default -F _%s %s\n",
        name, name);
}
