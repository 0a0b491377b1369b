/*
 * Driver for fuzz targets in ordinary builds: runs every file of the given folders or files once through the
 * target. libFuzzer finds inputs; this keeps what it found fixed, with any compiler and any sanitizer.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* Run one file; the copy has exactly its size, so that a sanitizer sees a read past the end. */
static int replay_file(const char *path, long long n_bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(n_bytes > 0 ? (size_t)n_bytes : 1);
    int failed = file == NULL || data == NULL || fread(data, 1, (size_t)n_bytes, file) != (size_t)n_bytes;

    if (failed)
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
    else
        (void)LLVMFuzzerTestOneInput(data, (size_t)n_bytes);
    free(data);
    if (file != NULL)
        (void)fclose(file);
    return failed;
}

static int replay_folder(const char *folder, int *n_files)
{
    DIR *dir = opendir(folder);
    int failed = 0;

    if (dir == NULL) {
        (void)fprintf(stderr, "%s: %s\n", folder, strerror(errno));
        return 1;
    }
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char path[4096];
        struct stat status;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof path || stat(path, &status) != 0)
            failed = 1;
        else if (S_ISREG(status.st_mode)) {
            failed |= replay_file(path, status.st_size);
            ++*n_files;
        }
    }
    (void)closedir(dir);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    int n_files = 0;

    for (int i = 1; i < argc; i++) {
        struct stat status;
        if (stat(argv[i], &status) == 0 && S_ISREG(status.st_mode)) {
            failed |= replay_file(argv[i], status.st_size);
            n_files++;
        } else {
            failed |= replay_folder(argv[i], &n_files);
        }
    }
    (void)printf("%d inputs\n", n_files);
    return failed != 0 || n_files == 0;
}
