/*
 * Routes: by which steps, in which order, a tensor goes from one layout to another. Each axis of the grid
 * that changes does so once, alone by a collective of its own or with others in one exchange; the layouts
 * between are layouts too. The route says nothing of a rank: all ranks find the same one.
 */
#ifndef SW_DTENSOR_ROUTE_H
#define SW_DTENSOR_ROUTE_H

#include "dtensor/step.h"

typedef struct sw_leg {
    sw_step_kind kind;
    uint32_t changed;    /* axes, a bit each */
    sw_tensor_layout to; /* where it leads */
} sw_leg;

typedef struct sw_route {
    uint32_t n;
    sw_leg legs[SW_GRID_MAX_AXES];
} sw_route;

/*
 * The best route: no tensor on the way is larger than it must be, then as few exchanges as possible, then
 * the least traffic, then the fewest steps. Layouts of one grid and shape that do not differ have no legs.
 * `from` may be summed wherever it has copies, `to` only where it is P.
 */
void sw_route_find(sw_route *out, const sw_tensor_layout *from, const sw_tensor_layout *to);

#endif
