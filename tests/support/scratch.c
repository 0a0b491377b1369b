/* A scratch folder for tests: see the header. */
#include "scratch.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/file.h"

static char folder[64];

int scratch_setup(void **state)
{
    /* In memory where that is possible: hundreds of small files. */
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    (void)state;
    (void)snprintf(folder, sizeof folder, "%s/sw-checkpoint-XXXXXX", where);
    return mkdtemp(folder) == NULL;
}

int scratch_setup_inside(void **state)
{
    return scratch_setup(state) != 0 || chdir(folder) != 0;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

static int remove_all(const char *path)
{
    struct stat about;

    return lstat(path, &about) != 0 ? 0 : nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int scratch_teardown(void **state)
{
    (void)state;
    if (sw_disk_fault_set(NULL, NULL) != SW_OK)
        return 1;
    return remove_all(folder);
}

const char *scratch(const char *name)
{
    static char paths[8][1024];
    static size_t turn;
    char *path = paths[turn++ % 8];

    if (name[0] == '/')
        return name;
    (void)snprintf(path, sizeof paths[0], name[0] == '\0' ? "%s" : "%s/%s", folder, name);
    return path;
}

void scratch_remove(const char *name)
{
    if (remove_all(scratch(name)) != 0)
        fail_msg("cannot remove %s", scratch(name));
}

void scratch_bytes(const char *name, const void *bytes, size_t n_bytes)
{
    char path[1024];

    (void)snprintf(path, sizeof path, "%s", scratch(name));
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        fail_msg("cannot write %s", path);
    if ((n_bytes > 0 && fwrite(bytes, 1, n_bytes, file) != n_bytes) || fclose(file) != 0)
        fail_msg("cannot write %s", path);
}

void scratch_text(const char *name, const char *text, bool is_json)
{
    sw_buffer b = {0};

    for (; *text != '\0'; text++) {
        char c = is_json && *text == '\'' ? '"' : *text;
        sw_buffer_putc(&b, c);
    }
    scratch_bytes(name, b.bytes, b.length);
    sw_buffer_clear(&b);
}

sw_buffer scratch_read(const char *name)
{
    sw_buffer b = {0};
    sw_file_map map = {0};
    sw_error err = {0};

    if (sw_file_map_open(&map, scratch(name), UINT64_MAX, &err) != SW_OK)
        fail_msg("%s", err.what);
    sw_buffer_append(&b, map.bytes, map.n_bytes);
    sw_file_map_close(&map);
    (void)sw_buffer_text(&b);
    return b;
}

bool scratch_has(const char *name)
{
    struct stat about;

    return lstat(scratch(name), &about) == 0;
}

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *scratch_list(const char *name)
{
    static char text[65536];
    char *names[512];
    size_t n = 0;
    DIR *dir = opendir(scratch(name));

    if (dir == NULL)
        fail_msg("no folder %s", scratch(name));
    for (struct dirent *entry = readdir(dir); entry != NULL && n < 512; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            names[n++] = strdup(entry->d_name);
    }
    (void)closedir(dir);
    qsort(names, n, sizeof *names, compare_words);
    text[0] = '\0';
    for (size_t i = 0, used = 0; i < n; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s ", names[i]);
        free(names[i]);
    }
    return text;
}

void scratch_edit(const char *name, const char *from, const char *to)
{
    sw_buffer old = scratch_read(name);
    sw_buffer fresh = {0};
    const char *hit = memmem(old.bytes, old.length, from, strlen(from));

    if (hit == NULL)
        fail_msg("%s: no '%s' in it", scratch(name), from);
    sw_buffer_append(&fresh, old.bytes, (size_t)(hit - old.bytes));
    sw_buffer_puts(&fresh, to);
    sw_buffer_append(&fresh, hit + strlen(from), old.length - (size_t)(hit - old.bytes) - strlen(from));
    scratch_bytes(name, fresh.bytes, fresh.length);
    sw_buffer_clear(&old);
    sw_buffer_clear(&fresh);
}
