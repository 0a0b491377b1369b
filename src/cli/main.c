/* The process: everything else is in program.c, where tests reach it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/disk.h"
#include "base/status.h"
#include "cli/interrupt.h"
#include "cli/program.h"

/* Faults for tests of crash safety, named by the environment (base/disk.h). */
static sw_status set_fault(void)
{
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread is there yet
    const char *fault = getenv("SW_FAULT");
    sw_error err = {0};
    sw_status status = sw_disk_fault_set(fault, &err);

    if (status != SW_OK)
        (void)fprintf(stderr, "shardwright: SW_FAULT: %s\nhelp: %s\n", err.what, err.help);
    return status;
}

int main(int argc, char **argv)
{
    sw_status status = set_fault();

    if (status != SW_OK)
        return sw_status_exit(status);
    sw_interrupt_ignore_file_limit();
    sw_interrupt_say_lost_memory("");
    int exit_status = sw_program_main(argc, argv, stdout, stderr);
    sw_interrupt_follow();
    return exit_status;
}
