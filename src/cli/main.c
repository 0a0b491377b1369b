/* The process: everything else is in program.c, where tests reach it. */
#include <stdio.h>

#include "cli/program.h"

int main(int argc, char **argv)
{
    return sw_program_main(argc, argv, stdout, stderr);
}
