/* A kernel alone, as count.py hands it over: its calls are read from a file and made, once to be
 * counted, or again and again to be timed (the least time of all is printed, in ns).
 *
 *     counted CALLS.bin REPEATS
 *
 * CALLS.bin, in words of 64 bits: number of calls; then for each: members, bytes of workspace,
 * numbers of arguments and of results, the bytes of each, and the bytes of the arguments themselves.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void kernel(void **args, void **results, void *workspace, int64_t first, int64_t last,
            int64_t members);

static int64_t word(FILE *file) {
    int64_t value;
    if (fread(&value, 8, 1, file) != 1) exit(2);
    return value;
}

static void *lines(int64_t bytes) { return aligned_alloc(64, (bytes / 64 + 1) * 64); }

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

int main(int count, char **words) {
    FILE *file = count == 3 ? fopen(words[1], "rb") : NULL;
    if (!file) return 2;
    double total = 0;
    for (int64_t calls = word(file); calls > 0; calls--) {
        int64_t members = word(file), workspace = word(file), n = word(file), m = word(file);
        int64_t *sizes = malloc(8 * (n + m));
        void **arrays = malloc(8 * (n + m));
        for (int64_t k = 0; k < n + m; k++) sizes[k] = word(file);
        for (int64_t k = 0; k < n + m; k++) {
            arrays[k] = lines(sizes[k]);
            if (k < n && sizes[k] && fread(arrays[k], sizes[k], 1, file) != 1) return 2;
        }
        void *room = lines(workspace);
        double best = 1e300;
        for (int repeat = atoi(words[2]); repeat > 0; repeat--) {
            double began = now_ns();
            kernel(arrays, arrays + n, room, 0, members, members);
            double took = now_ns() - began;
            best = took < best ? took : best;
        }
        total += best;
    }
    printf("%.0f\n", total);
    return 0;
}
