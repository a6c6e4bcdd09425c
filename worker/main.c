/* main: a pipe that closes early is an error to report, not a death. */
#include <signal.h>

#include "worker/cli.h"

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return (int)cli_main(argc, argv);
}
