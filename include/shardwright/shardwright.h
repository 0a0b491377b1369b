/*
 * Everything of the planner library.
 *
 * One rule for arguments holds for every function of these headers:
 *
 * - A pointer must not be NULL unless the function says that it may. `err` may always be NULL, and so may
 *   `options`: then the defaults hold.
 * - A function that can fail refuses a NULL with SW_E_ARGUMENT and names it: "sw_model_open(): path is NULL".
 *   Whatever it fails of, its outputs are then NULL or zero, unless it says otherwise.
 * - A function that only answers has an answer for nothing: 0, false or NULL, unless it says another. That is
 *   its answer to a NULL, and to an index or enumerator beyond the last; an output is then zero.
 * - A function that frees or sets does nothing with NULL.
 * - A struct that begins with its size is refused with SW_E_ARGUMENT when no version could have that size.
 *
 * Nothing can be told about a pointer that is not NULL: a handle that was freed, or a text without an end, is
 * undefined behaviour.
 */
#ifndef SHARDWRIGHT_SHARDWRIGHT_H
#define SHARDWRIGHT_SHARDWRIGHT_H

#include "checkpoint.h"
#include "error.h"
#include "mesh.h"
#include "model.h"
#include "plan.h"
#include "plugin.h"
#include "report.h"
#include "version.h"

#endif
