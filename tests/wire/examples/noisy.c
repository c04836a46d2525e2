/* A noisy number in C, without a JSON library: the audit writes the fields in a fixed order.
   Promises epsilon 1 and keeps it. Compile with: cc -O2 -o noisy noisy.c -lm */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static uint64_t state;

static double uniform(void) { /* splitmix64 */
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

int main(void) {
    static char line[1 << 16];
    double data = 0;
    long id, n;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "{\"type\":\"hello\",\"id\":%ld", &id) == 1) {
            printf("{\"type\":\"hello\",\"id\":%ld,\"claim\":\"eps=1\",\"pairs\":[[0,1]]}\n", id);
        } else if (sscanf(line, "{\"type\":\"data\",\"id\":%ld,\"data\":%lf", &id, &data) == 2) {
            printf("{\"type\":\"ok\",\"id\":%ld}\n", id);
        } else if (sscanf(line, "{\"type\":\"run\",\"id\":%ld,\"n\":%ld,\"seed\":\"%" SCNu64, &id, &n,
                          &state) == 3) {
            printf("{\"type\":\"outputs\",\"id\":%ld,\"outputs\":[", id);
            for (long i = 0; i < n; i++)
                printf("%s%.17g", i ? "," : "", data + log(uniform() / uniform()));
            printf("]}\n");
        } else if (strncmp(line, "{\"type\":\"bye\"", 13) == 0) {
            return 0;
        } else {
            fprintf(stderr, "cannot read: %s", line);
            return 1;
        }
        fflush(stdout);
    }
    return 0;
}
