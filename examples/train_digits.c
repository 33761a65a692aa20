/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a convolutional network on real handwritten digits with the cuDNN API alone - no CUDA
 * runtime, no other library - on a GPU or on the CPU, whichever the handle has. Read it from main()
 * downwards: it is the library's tutorial.
 *
 *     train_digits [--data digits|fashion-mnist] [--seed N] [--seeds N] [--epochs N]
 *                  [--digits PATH] [--svg PATH]
 *
 * The network, for images of S x S:
 *
 *     conv 3x3, batch norm, relu, [max pool 2x2 where S is 28]
 *     conv 3x3, batch norm, relu, max pool 2x2, dropout
 *     conv over the whole image to 10 channels (a dense layer), bias, softmax
 *
 * trained by momentum SGD on the mean negative log-likelihood. */
#include <time.h>

#include "train_digits/network.h"
#include "train_digits/report.h"

#ifndef WARPDNN_EXAMPLES_DATA
#define WARPDNN_EXAMPLES_DATA "examples/data"
#endif

/* Images order[first .. first+BATCH-1] (wrapping around) through the network. `scores` receives the
 * log-probabilities, BATCH x CLASSES. */
static void forward(struct network *net, const struct dataset *data, const int *order, int first,
                    int training, float *scores)
{
    int pixels = data->size * data->size;
    float *batch = malloc(sizeof *batch * (size_t)(BATCH * pixels));
    struct blob *last = &net->blob[net->layers], *probability = &net->blob[net->layers + 1];
    for (int i = 0; i < BATCH; ++i) {
        int image = order[(first + i) % data->count];
        memcpy(batch + i * pixels, data->pixels + (size_t)image * (size_t)pixels,
               sizeof *batch * (size_t)pixels);
    }
    CHECK(
        warpdnnMemcpy(handle, net->blob[0].data, batch, sizeof *batch * (size_t)(BATCH * pixels)));
    free(batch);
    network_forward(net, training);
    CHECK(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                              last->desc, last->data, &zero, probability->desc, probability->data));
    CHECK(warpdnnMemcpy(handle, scores, probability->data, sizeof *scores * BATCH * CLASSES));
}

/* The loss is the mean of -scores[label]: its gradient is -1/BATCH there and 0 elsewhere. */
static void backward(struct network *net, const struct dataset *data, const int *order, int first)
{
    float grad[BATCH * CLASSES] = {0};
    struct blob *last = &net->blob[net->layers], *probability = &net->blob[net->layers + 1];
    for (int i = 0; i < BATCH; ++i) {
        grad[i * CLASSES + data->label[order[first + i]]] = -1.0f / BATCH;
    }
    CHECK(warpdnnMemcpy(handle, probability->grad, grad, sizeof grad));
    CHECK(cudnnSoftmaxBackward(handle, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                               probability->desc, probability->data, probability->desc,
                               probability->grad, &zero, last->desc, last->grad));
    network_backward(net);
}

static int best_class(const float *scores)
{
    int best = 0;
    for (int c = 1; c < CLASSES; ++c)
        if (scores[c] > scores[best]) best = c;
    return best;
}

/* An order of the images: 0, 1, 2, ... or shuffled. */
static void fill_order(int *order, int count, int shuffle)
{
    for (int i = 0; i < count; ++i) order[i] = i;
    for (int i = count - 1; shuffle && i > 0; --i) {
        int other = (int)(uniform() * (i + 1));
        int kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static void train(struct network *net, const struct dataset *data, int epochs, double rate,
                  struct history *h)
{
    int steps = data->count / BATCH;
    int *order = malloc(sizeof *order * (size_t)data->count);
    float scores[BATCH * CLASSES];
    h->epochs = epochs;
    for (int epoch = 0; epoch < epochs; ++epoch) {
        double loss = 0.0;
        int right = 0;
        fill_order(order, data->count, 1);
        for (int step = 0; step < steps; ++step) {
            /* the rate falls to almost nothing along half a cosine */
            double done = (epoch + (double)step / steps) / epochs;
            forward(net, data, order, step * BATCH, 1, scores);
            for (int i = 0; i < BATCH; ++i) {
                int label = data->label[order[step * BATCH + i]];
                loss -= scores[i * CLASSES + label];
                right += best_class(scores + i * CLASSES) == label;
            }
            backward(net, data, order, step * BATCH);
            network_update(net, 0.5 * rate * (1.0 + cos(3.14159265 * done)));
            progress(epoch + 1, epochs, step + 1, steps, loss / ((step + 1) * BATCH),
                     (double)right / ((step + 1) * BATCH));
        }
        h->loss[epoch] = loss / (steps * BATCH);
        h->accuracy[epoch] = (double)right / (steps * BATCH);
    }
    free(order);
}

/* Fills the confusion matrix, draws a few misread images; returns the share read right. */
static double test(struct network *net, const struct dataset *data, struct history *h,
                   const char *const *names, int draw_most)
{
    int *order = malloc(sizeof *order * (size_t)data->count);
    float scores[BATCH * CLASSES];
    int right = 0;
    memset(h->confusion, 0, sizeof h->confusion);
    fill_order(order, data->count, 0);
    for (int first = 0; first < data->count; first += BATCH) {
        forward(net, data, order, first, 0, scores);
        for (int i = 0; i < BATCH && first + i < data->count; ++i) {
            int label = data->label[first + i];
            int read = best_class(scores + i * CLASSES);
            h->confusion[label][read] += 1;
            right += label == read;
            if (label == read || draw_most-- <= 0) continue;
            printf("\ntest image %d is %s, read as %s:\n", first + i, names[label], names[read]);
            draw(data->pixels + (size_t)(first + i) * (size_t)(data->size * data->size),
                 data->size);
        }
    }
    free(order);
    return (double)right / data->count;
}

static void print_engines(const struct network *net)
{
    static const char *const kind[] = {"conv", "batch norm", "relu", "max pool", "dropout"};
    printf("\n%-12s %-18s %-28s %s\n", "layer", "output", "forward engine", "backward engine");
    for (int i = 0; i < net->layers; ++i) {
        char shape[32];
        snprintf(shape, sizeof shape, "%d x %d x %d", net->blob[i + 1].channels,
                 net->blob[i + 1].size, net->blob[i + 1].size);
        printf("%-12s %-18s %-28s %s\n", kind[net->layer[i].kind], shape, net->layer[i].engine[0],
               net->layer[i].engine[1]);
    }
}

struct options {
    const char *digits;
    const char *svg;
    int fashion;
    int epochs;
    int seeds;
    unsigned long long seed;
};

/* A whole number from 1 on, or the end. */
static int count_of(const char *option, const char *value)
{
    char *end;
    long n = strtol(value, &end, 10);
    if (*value && !*end && n >= 1 && n <= 1000000) return (int)n;
    fprintf(stderr, "%s %s: a whole number from 1 on is wanted\n", option, value);
    exit(2);
}

static struct options read_options(int argc, char **argv)
{
    struct options o = {WARPDNN_EXAMPLES_DATA "/digits.csv.gz", "train_digits.svg", 0, 0, 3, 1};
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value && !strcmp(option, "--data") && !strcmp(value, "fashion-mnist")) o.fashion = 1;
        else if (value && !strcmp(option, "--data") && !strcmp(value, "digits")) o.fashion = 0;
        else if (value && !strcmp(option, "--seed"))
            o.seed = (unsigned long long)count_of(option, value), o.seeds = 1;
        else if (value && !strcmp(option, "--seeds")) o.seeds = count_of(option, value);
        else if (value && !strcmp(option, "--epochs")) o.epochs = count_of(option, value);
        else if (value && !strcmp(option, "--digits")) o.digits = value;
        else if (value && !strcmp(option, "--svg")) o.svg = value;
        else {
            fprintf(stderr,
                    "usage: %s [--data digits|fashion-mnist] [--seed N] [--seeds N] "
                    "[--epochs N] [--digits PATH] [--svg PATH]\n",
                    argv[0]);
            exit(!strcmp(option, "--help") ? 0 : 2);
        }
    }
    if (o.epochs > EPOCHS_MAX) {
        fprintf(stderr, "--epochs %d: at most %d\n", o.epochs, EPOCHS_MAX);
        exit(2);
    }
    if (o.epochs == 0) o.epochs = o.fashion ? 4 : 12;
    if (o.fashion && o.seeds == 3) o.seeds = 1;
    return o;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    static const char *const digit_names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    static const char *const fashion_names[] = {"T-shirt", "trouser", "pullover", "dress", "coat",
                                                "sandal",  "shirt",   "sneaker",  "bag",   "boot"};
    struct options o = read_options(argc, argv);
    const char *const *names = o.fashion ? fashion_names : digit_names;
    double wanted = o.fashion ? 0.90 : 0.98, start = seconds();
    struct dataset training, held_out;
    struct network net;
    struct history history;
    warpdnnDevice_t device;
    int reached = 0;
    if (!(o.fashion ? load_fashion(&training, &held_out)
                    : load_digits(o.digits, &training, &held_out))) {
        return 1;
    }
    normalize(&training, &held_out);
    CHECK(cudnnCreate(&handle));
    CHECK(warpdnnGetDevice(handle, &device, NULL));
    printf("%s on the %s: %d images to train on, %d held out\n", warpdnnGetVersionString(),
           device == WARPDNN_DEVICE_GPU ? "GPU" : "CPU", training.count, held_out.count);
    for (int run = 0; run < o.seeds; ++run) {
        double accuracy;
        random_state = o.seed + (unsigned long long)run;
        printf("\nseed %llu\n", random_state);
        network_create(&net, training.size, random_state);
        /* a last layer of more inputs wants smaller steps */
        train(&net, &training, o.epochs, o.fashion ? 0.01 : 0.05, &history);
        accuracy = test(&net, &held_out, &history, names, run + 1 == o.seeds ? 3 : 0);
        printf("\nseed %llu: %.2f%% of the held-out images read right\n",
               o.seed + (unsigned long long)run, 100.0 * accuracy);
        reached += accuracy >= wanted;
        if (run + 1 == o.seeds) print_engines(&net);
        network_destroy(&net);
    }
    print_confusion(&history, names);
    if (write_svg(o.svg, &history, names)) printf("\nloss curve and confusion matrix: %s\n", o.svg);
    else fprintf(stderr, "cannot write %s\n", o.svg);
    printf("%d of %d seeds reached %.0f%%, %.1f s\n", reached, o.seeds, 100.0 * wanted,
           seconds() - start);
    CHECK(cudnnDestroy(handle));
    dataset_free(&training);
    dataset_free(&held_out);
    if (fflush(stdout) || ferror(stdout)) {
        perror("standard output");
        return 1;
    }
    return reached == o.seeds ? 0 : 1;
}
