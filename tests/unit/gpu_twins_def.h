/* SPDX-License-Identifier: Apache-2.0
 *
 * A definition for gpu_twins_test.c: y = 2 x + 1 by element, and the sum and the largest of a row. */

WD_FN void WD_NAME(twin_map)(const struct twin_args *a, int64_t item)
{
    a->y[item] = (double)((WD_ACC)2 * (WD_ACC)a->x[item] + (WD_ACC)1);
}

struct WD_NAME(twin_sum_state) {
    WD_ACC sum, largest;
};

WD_FN void WD_NAME(twin_sum_init)(struct WD_NAME(twin_sum_state) * s)
{
    s->sum = 0;
    s->largest = 0;
}

WD_FN void WD_NAME(twin_sum_term)(const struct twin_args *a, int64_t item, int64_t k,
                                  struct WD_NAME(twin_sum_state) * s)
{
    WD_ACC value = (WD_ACC)a->x[item * a->terms + k];
    s->sum += value;
    if (value > s->largest) s->largest = value;
}

WD_FN void WD_NAME(twin_sum_combine)(const struct twin_args *a,
                                     struct WD_NAME(twin_sum_state) * into,
                                     const struct WD_NAME(twin_sum_state) * from)
{
    (void)a;
    into->sum += from->sum;
    if (from->largest > into->largest) into->largest = from->largest;
}

WD_FN void WD_NAME(twin_sum_finish)(const struct twin_args *a, int64_t item,
                                    const struct WD_NAME(twin_sum_state) * s)
{
    a->y[2 * item] = (double)s->sum;
    a->y[2 * item + 1] = (double)s->largest;
}
