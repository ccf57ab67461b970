/* Loaded into a process by LD_PRELOAD. Tells which bytes of which files are certain to be on the device, and makes the device fail.
 *
 * SLATE_DEVICE_LOG     file to which lines are appended:
 *                        S INODE LENGTH   the file is synced up to this length
 *                        R INODE          the file is removed or replaced, and the number can be used for another one
 * SLATE_DEVICE_FOLDER  the folder whose files fail
 * SLATE_DEVICE_FULL    as long as this file exists, writes to files in the folder fail with ENOSPC
 * SLATE_DEVICE_FAILS   ERRNO:COUNT: writes, syncs and renames of files in the folder fail with ERRNO after COUNT of them went well
 * SLATE_DEVICE_READS   ERRNO:COUNT: reads of files in the folder likewise
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int log_file = -1;
static const char *folder, *full;

/* Calls that fail after some went well. */
struct failing {
    int error;
    long left;
};
static struct failing writes, reads;

static void set_up(struct failing *calls, const char *name) {
    const char *fails = getenv(name);
    if (fails)
        sscanf(fails, "%d:%ld", &calls->error, &calls->left);
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SLATE_DEVICE_LOG");
    folder = getenv("SLATE_DEVICE_FOLDER");
    full = getenv("SLATE_DEVICE_FULL");
    if (path)
        log_file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    set_up(&writes, "SLATE_DEVICE_FAILS");
    set_up(&reads, "SLATE_DEVICE_READS");
}

static void note(const char *kind, ino_t inode, off_t length) {
    char line[64];
    int count = snprintf(line, sizeof line, "%s %llu %lld\n", kind, (unsigned long long)inode, (long long)length);
    int before = errno;
    if (log_file >= 0)
        syscall(SYS_write, log_file, line, (size_t)count);
    errno = before;
}

static int is_path_in_folder(const char *path) {
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int in_folder(int file) {
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return is_path_in_folder(path);
}

/* Whether the next of these calls fails. errno is set. */
static int next_fails(struct failing *calls) {
    if (__atomic_sub_fetch(&calls->left, 1, __ATOMIC_SEQ_CST) >= 0)
        return 0;
    errno = calls->error;
    return 1;
}

/* Whether this call fails. errno is set. */
static int fails(struct failing *calls, int file) {
    return calls->error && folder && in_folder(file) && next_fails(calls);
}

/* Whether this write fails. errno is set. */
static int does_not_fit(int file) {
    if (fails(&writes, file))
        return 1;
    int before = errno;
    if (!full || !folder || access(full, F_OK) != 0 || !in_folder(file)) {
        errno = before;
        return 0;
    }
    errno = ENOSPC;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* The length is taken before the sync: what is appended meanwhile is not certain to be synced. */
#define SYNC(name)                                                                                                             \
    int name(int file) {                                                                                                       \
        struct stat status;                                                                                                    \
        int known = fstat(file, &status) == 0;                                                                                 \
        if (fails(&writes, file))                                                                                              \
            return -1;                                                                                                         \
        int result = REAL(name)(file);                                                                                         \
        if (result == 0 && known && S_ISREG(status.st_mode))                                                                   \
            note("S", status.st_ino, status.st_size);                                                                          \
        return result;                                                                                                         \
    }
SYNC(fsync)
SYNC(fdatasync)

ssize_t write(int file, const void *bytes, size_t count) {
    return does_not_fit(file) ? -1 : REAL(write)(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    return does_not_fit(file) ? -1 : REAL(pwrite)(file, bytes, count, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    return does_not_fit(file) ? -1 : REAL(pwrite64)(file, bytes, count, at);
}

ssize_t read(int file, void *bytes, size_t count) {
    return fails(&reads, file) ? -1 : REAL(read)(file, bytes, count);
}

ssize_t pread(int file, void *bytes, size_t count, off_t at) {
    return fails(&reads, file) ? -1 : REAL(pread)(file, bytes, count, at);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t at) {
    return fails(&reads, file) ? -1 : REAL(pread64)(file, bytes, count, at);
}

/* Noted before it happens: afterwards another thread can have made a file with the same number. */
static void remove_soon(int known, const struct stat *status) {
    if (known && S_ISREG(status->st_mode) && status->st_nlink == 1)
        note("R", status->st_ino, 0);
}

int unlink(const char *path) {
    struct stat status;
    remove_soon(lstat(path, &status) == 0, &status);
    return REAL(unlink)(path);
}

int unlinkat(int at, const char *path, int flags) {
    struct stat status;
    remove_soon(fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) == 0, &status);
    return REAL(unlinkat)(at, path, flags);
}

int rename(const char *from, const char *to) {
    struct stat status;
    if (writes.error && folder && is_path_in_folder(to) && next_fails(&writes))
        return -1;
    remove_soon(lstat(to, &status) == 0, &status);
    return REAL(rename)(from, to);
}
