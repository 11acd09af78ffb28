/* Run a network that netloop wrote as a SavedModel, by TensorFlow's C library and without Python.

   netloop convert model.onnx model.savedmodel
   cc run_saved_model.c -o run_saved_model -I$TF/include -L$TF -l:libtensorflow_cc.so.2 \
      -l:libtensorflow_framework.so.2 -Wl,-rpath,$TF
   ./run_saved_model model.savedmodel x 2x3 1 2 3 4 5 6

   TF is the folder of the Python package tensorflow, or of TensorFlow's release for C. The arguments are the folder,
   the name of the one input, its shape and its float numbers in row-major order. The first output, in the order of the
   names, is printed. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

enum { MOST_AXES = 8 };

static void require_ok(const TF_Status *status, const char *what) {
    if (TF_GetCode(status) != TF_OK) {
        fprintf(stderr, "%s: %s\n", what, TF_Message(status));
        exit(1);
    }
}

static void require(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(2);
    }
}

/* The lengths of the axes in a text such as 2x3; the result is their number. */
static int parse_shape(const char *text, int64_t *shape, int64_t *size) {
    int rank = 0;
    *size = 1;
    for (char *next = NULL; *text; text = *next == 'x' ? next + 1 : next) {
        require(rank < MOST_AXES, "the shape has too many axes");
        shape[rank] = strtoll(text, &next, 10);
        require(next != text && shape[rank] > 0 && (*next == 'x' || *next == 0), "a shape is like 2x3");
        *size *= shape[rank++];
    }
    return rank;
}

static TF_Tensor *float_tensor(int rank, const int64_t *shape, int64_t size, char **numbers) {
    TF_Tensor *tensor = TF_AllocateTensor(TF_FLOAT, shape, rank, size * sizeof(float));
    float *values = TF_TensorData(tensor);
    for (int64_t i = 0; i < size; i++) {
        values[i] = strtof(numbers[i], NULL);
    }
    return tensor;
}

/* The operation that feeds an input of the signature serving_default, as TensorFlow's SavedModels call it. */
static TF_Output input_of(TF_Graph *graph, const char *name) {
    char full[512];
    snprintf(full, sizeof full, "serving_default_%s", name);
    TF_Output found = {TF_GraphOperationByName(graph, full), 0};
    require(found.oper != NULL, "the model has no input of this name");
    return found;
}

int main(int argc, char **argv) {
    int64_t shape[MOST_AXES], size;
    require(argc > 3, "usage: run_saved_model FOLDER INPUT SHAPE NUMBER ...");
    int rank = parse_shape(argv[3], shape, &size);
    require(argc - 4 == size, "there are not as many numbers as the shape has elements");

    TF_Status *status = TF_NewStatus();
    TF_Graph *graph = TF_NewGraph();
    TF_SessionOptions *options = TF_NewSessionOptions();
    const char *tags[] = {"serve"};
    TF_Session *session = TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL, status);
    require_ok(status, "loading the model");

    TF_Output input = input_of(graph, argv[2]);
    TF_Output output = {TF_GraphOperationByName(graph, "StatefulPartitionedCall"), 0};
    require(output.oper != NULL, "the model has no output");
    TF_Tensor *given = float_tensor(rank, shape, size, argv + 4), *made = NULL;
    TF_SessionRun(session, NULL, &input, &given, 1, &output, &made, 1, NULL, 0, NULL, status);
    require_ok(status, "running the model");
    require(TF_TensorType(made) == TF_FLOAT, "the first output is not of floats");

    const float *values = TF_TensorData(made);
    for (int64_t i = 0; i < TF_TensorElementCount(made); i++) {
        printf("%.9g\n", values[i]);
    }

    TF_DeleteTensor(given);
    TF_DeleteTensor(made);
    TF_DeleteSession(session, status);
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
    return 0;
}
