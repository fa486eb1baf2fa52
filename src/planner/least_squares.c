/* Least squares by orthogonal columns, which keeps the digits that normal equations would lose. */
#include "planner/least_squares.h"

enum { TERMS_MAX = 3 };

/* One set of terms, taken from 1, N-1 and N(N-1), fitted without regard to signs. */
struct trial {
    double coefficients[TERMS_MAX];
    double distance; /* sum of squares that remain */
};

static double dot(const double *one, const double *other, uint32_t count) {
    double sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        sum += one[i] * other[i];
    }
    return sum;
}

/* The column of a term, weighted by X/N. */
static void fill_column(const struct points *points, int term, double column[POINTS_MAX]) {
    for (uint32_t i = 0; i < points->count; i++) {
        double n = points->x[i];
        double value = term == 0 ? 1 : term == 1 ? n - 1 : n * (n - 1);

        column[i] = value * points->y[i] / n;
    }
}

/* Modified Gram and Schmidt: columns become orthonormal, `upper` what they were made of. */
static struct trial try_terms(const struct points *points, const int *terms, int term_count) {
    double columns[TERMS_MAX][POINTS_MAX];
    double upper[TERMS_MAX][TERMS_MAX] = {0};
    double right[TERMS_MAX];
    double rest[POINTS_MAX];
    struct trial trial = {0};

    for (uint32_t i = 0; i < points->count; i++) {
        rest[i] = 1; /* N/X, weighted */
    }
    for (int k = 0; k < term_count; k++) {
        fill_column(points, terms[k], columns[k]);
        for (int j = 0; j < k; j++) {
            upper[j][k] = dot(columns[j], columns[k], points->count);
            for (uint32_t i = 0; i < points->count; i++) {
                columns[k][i] -= upper[j][k] * columns[j][i];
            }
        }
        upper[k][k] = sqrt(dot(columns[k], columns[k], points->count));
        for (uint32_t i = 0; i < points->count; i++) {
            columns[k][i] /= upper[k][k];
        }
        right[k] = dot(columns[k], rest, points->count);
        for (uint32_t i = 0; i < points->count; i++) {
            rest[i] -= right[k] * columns[k][i];
        }
    }
    for (int k = term_count - 1; k >= 0; k--) {
        for (int j = k + 1; j < term_count; j++) {
            right[k] -= upper[k][j] * right[j];
        }
        right[k] /= upper[k][k];
        trial.coefficients[terms[k]] = right[k];
    }
    trial.distance = dot(rest, rest, points->count);
    return trial;
}

static bool means_something(const struct trial *trial) {
    return trial->coefficients[0] > 0 && trial->coefficients[1] >= 0 && trial->coefficients[2] >= 0;
}

static uint32_t distinct_count(const struct points *points) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < points->count; i++) {
        bool first = true;

        for (uint32_t j = 0; first && j < i; j++) {
            first = points->x[j] != points->x[i];
        }
        count += first;
    }
    return count;
}

static struct fit finish(const struct points *points, const struct trial *trial) {
    struct fit fit = {.alone = 1 / trial->coefficients[0]};
    double most = 0;
    double sum = 0;

    for (uint32_t i = 0; i < points->count; i++) {
        most = fmax(most, points->x[i]);
    }
    fit.contention = trial->coefficients[1] / trial->coefficients[0];
    fit.contention = fit.contention * most < 1e-9 ? 0 : fit.contention;
    fit.coherency = trial->coefficients[2] / trial->coefficients[0];
    fit.coherency = fit.coherency * most * most < 1e-9 ? 0 : fit.coherency;
    for (uint32_t i = 0; i < points->count; i++) {
        double n = points->x[i];
        double fitted =
            fit.alone * n / (1 + fit.contention * (n - 1) + fit.coherency * n * (n - 1));

        sum += (fitted / points->y[i] - 1) * (fitted / points->y[i] - 1);
    }
    fit.error = sqrt(sum / points->count);
    fit.error = fit.error < 1e-9 ? 0 : fit.error;
    return fit;
}

/* The closest of the sets that mean something; the first one is the closest if it does. */
static struct fit closest(const struct points *points, const int sets[][TERMS_MAX],
                          const int *sizes, int set_count) {
    struct trial best = {0};
    bool found = false;

    for (int i = 0; i < set_count; i++) {
        struct trial trial = try_terms(points, sets[i], sizes[i]);

        if (means_something(&trial) && (!found || trial.distance < best.distance)) {
            best = trial;
            found = true;
        }
    }
    return finish(points, &best);
}

struct fit least_squares_fit_amdahl(const struct points *points) {
    static const int sets[][TERMS_MAX] = {{0, 1}, {0}};
    static const int sizes[] = {2, 1};

    if (distinct_count(points) < 2) {
        return (struct fit){.cannot = "that takes points of two numbers of clients"};
    }
    struct fit fit = closest(points, sets, sizes, ARRAY_SIZE(sizes));

    if (fit.contention > 1) {
        fit.cannot = "it falls with more clients, which no serial share explains";
    }
    return fit;
}

struct fit least_squares_fit_usl(const struct points *points) {
    static const int sets[][TERMS_MAX] = {{0, 1, 2}, {0, 1}, {0, 2}, {0}};
    static const int sizes[] = {3, 2, 2, 1};

    if (distinct_count(points) < 3) {
        return (struct fit){.cannot = "that takes points of three numbers of clients"};
    }
    return closest(points, sets, sizes, ARRAY_SIZE(sizes));
}
