/*
 * Edit distance in a band: a word further away than the few edits allowed is no suggestion, so only the cells
 * within that many of the diagonal are computed and the search over thousands of FQNs stays cheap.
 */
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

enum { MOST_EDITS = 3, LONGEST_WORD = 255, BAND = 2 * MOST_EDITS + 1, FAR = 100 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/*
 * Edits from a to b, or FAR. Row i of the table holds cell (i, j) at place j - i + MOST_EDITS; what lies
 * outside the band is FAR.
 */
static int distance(const char *a, int a_length, const char *b, int b_length)
{
    int rows[3][BAND + 2]; /* this row, the last, the one before; one FAR cell on both sides */

    for (int r = 0; r < 3; r++) {
        for (int k = 0; k < BAND + 2; k++)
            rows[r][k] = FAR;
    }
    int *row = rows[0];
    int *last = rows[1];
    int *before = rows[2];
    for (int i = 0; i <= a_length; i++) {
        for (int k = 0; k < BAND; k++) {
            int j = i + k - MOST_EDITS;
            int best = i == 0 && j == 0 ? 0 : FAR;
            if (j >= 0 && j <= b_length) {
                if (i > 0)
                    best = smaller(best, last[k + 2] + 1);
                if (j > 0)
                    best = smaller(best, row[k] + 1);
                if (i > 0 && j > 0)
                    best = smaller(best, last[k + 1] + (a[i - 1] != b[j - 1]));
                if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                    best = smaller(best, before[k + 1] + 1);
            }
            row[k + 1] = best;
        }
        int *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_length - a_length + MOST_EDITS + 1];
}

static int allowed_edits(size_t a_length, size_t b_length)
{
    size_t third = (a_length > b_length ? a_length : b_length) / 3;
    return third < 1 ? 1 : third > MOST_EDITS ? MOST_EDITS : (int)third;
}

const char *sw_nearest(const char *word, const char *const *words, size_t n_words)
{
    const char *nearest = NULL;
    int fewest = FAR;
    size_t length = strlen(word);

    if (length > LONGEST_WORD)
        return NULL;
    for (size_t i = 0; i < n_words && fewest > 0; i++) {
        size_t other = strlen(words[i]);
        size_t apart = length > other ? length - other : other - length;
        int allowed = allowed_edits(length, other);
        if (other > LONGEST_WORD || apart > (size_t)allowed)
            continue;
        int edits = distance(word, (int)length, words[i], (int)other);
        if (edits <= allowed && edits < fewest) {
            fewest = edits;
            nearest = words[i];
        }
    }
    return nearest;
}
