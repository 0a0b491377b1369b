/* Version of the headers, to be compared with sw_version() of the library at run time. */
#ifndef SHARDWRIGHT_VERSION_H
#define SHARDWRIGHT_VERSION_H

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SW_VERSION_MAJOR 0
#define SW_VERSION_MINOR 1
#define SW_VERSION_PATCH 0
#define SW_VERSION       "0.1.0"

/** Version of the library that is linked, "major.minor.patch". */
SW_API const char *sw_version(void);

#ifdef __cplusplus
}
#endif
#endif
