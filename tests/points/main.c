/* main: the program ledgerlock with the hook of the tests set. */
#include <signal.h>

#include "ops/program.h"
#include "tests/points/trace.h"

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    session_hook = testkit_hook;
    return (int)cli_main(&cli_ledgerlock, argc, argv);
}
