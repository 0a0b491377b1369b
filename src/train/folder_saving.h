/* What the writers of folders share: a store made by hand, and what goes along with it. */
#ifndef SW_TRAIN_FOLDER_SAVING_H
#define SW_TRAIN_FOLDER_SAVING_H

#include "checkpoint/publish.h"
#include "checkpoint/target.h"
#include "train/folder.h"

#define SW_FOLDER_CONFIG "config.json"

enum { SW_FOLDER_SMALL_BYTES = 1 << 20 /* room for what is small and not yet made */ };

/* One folder. Tensor i of the store is that of the folder. */
typedef struct sw_folder_saving {
    const sw_folder *folder;
    sw_store store;   /* no files: names and shapes of what is written, and what is carried along */
    sw_buffer config; /* edited */
    sw_target *target;
    sw_publication publication;
    sw_error *err;
} sw_folder_saving;

/* The store and the config. */
sw_status sw_folder_saving_begin(sw_folder_saving *s);
void sw_folder_saving_clear(sw_folder_saving *s);

#endif
