/* The version of the library that is linked, to be compared with the headers' SW_VERSION. */
#include "shardwright/version.h"

const char *sw_version(void)
{
    return SW_VERSION;
}
