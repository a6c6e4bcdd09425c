/* main: of the program ledgerlock. SIGPIPE is ignored: a write to a closed pipe is an
 * error, which is reported. */
#include <signal.h>

#include "ops/program.h"

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return (int)cli_main(&cli_ledgerlock, argc, argv);
}
