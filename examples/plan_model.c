/*
 * Plan a model and look at the result: the smallest useful program on libshardwright.
 *
 *     cc plan_model.c $(pkg-config --cflags --libs shardwright) -o plan_model
 *     ./plan_model MODEL dp=2,tp=4 model.layers.0.
 *
 * Prints a line of numbers, then each parameter of the boundaries whose name begins with the last argument:
 * its extents, its placement over tp, and over which axes its gradient is summed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <shardwright/shardwright.h>

static void print_findings(const sw_report *report)
{
    for (size_t i = 0; i < sw_report_count(report); i++) {
        const sw_finding *finding = sw_report_finding(report, i);
        fprintf(stderr, "%s: %s [%s]\n", sw_severity_name(finding->severity), finding->what, finding->code);
    }
}

static void print_param(const char *boundary, const sw_param_plan *param)
{
    char tp[128];

    sw_placement_text(&param->tp, tp, sizeof tp);
    printf("%s.%.*s [", boundary, (int)param->path_length, param->path);
    for (uint32_t d = 0; d < param->n_dims; d++)
        printf("%s%" PRIu64, d == 0 ? "" : ", ", param->dims[d]);
    printf("] tp=%s", tp);
    for (size_t g = 0; g < param->n_grad_sums; g++)
        printf("%s%s", g == 0 ? " sum=" : ",", sw_axis_name(param->grad_sums[g].axis));
    printf("\n");
}

static void print_plan(const sw_plan *plan, const sw_model *model, const char *prefix)
{
    sw_boundary_info boundary;
    sw_param_plan param;

    printf("%zu parameters, %zu boundaries, %" PRIu32 " ranks\n", sw_model_param_count(model),
           sw_plan_boundary_count(plan), sw_mesh_ranks(sw_plan_mesh(plan)));
    for (size_t i = 0; sw_plan_boundary(plan, i, &boundary); i++) {
        if (strncmp(boundary.fqn, prefix, strlen(prefix)) != 0)
            continue;
        for (size_t j = 0; sw_plan_param(plan, i, j, &param); j++)
            print_param(boundary.fqn, &param);
    }
}

int main(int argc, char **argv)
{
    sw_error err = {0};
    sw_model *model = NULL;
    sw_mesh *mesh = NULL;
    sw_plan *plan = NULL;
    sw_report *report = NULL;
    sw_status status;

    if (argc != 4) {
        fprintf(stderr, "usage: plan_model MODEL MESH PREFIX\n");
        return 2;
    }
    status = sw_report_create(&report, &err);
    if (status == SW_OK)
        status = sw_model_open(&model, argv[1], &err);
    if (status == SW_OK)
        status = sw_mesh_create(&mesh, argv[2], 0, &err);
    if (status == SW_OK) {
        sw_plan_options options = SW_PLAN_OPTIONS_INIT;
        options.report = report;
        status = sw_plan_create(&plan, model, mesh, &options, &err);
    }

    if (status == SW_OK) {
        print_plan(plan, model, argv[3]);
    } else {
        print_findings(report);
        fprintf(stderr, "plan_model: %s\nhelp: %s\n", err.what, err.help);
    }
    sw_plan_destroy(plan);
    sw_mesh_destroy(mesh);
    sw_model_close(model);
    sw_report_destroy(report);
    return sw_status_exit(status);
}
