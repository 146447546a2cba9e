/* nvml_system.c -- NVML's beginning and end, its words for results, and what it says of the system.
 */
#include "nvml_api.h"
#include "version.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

nvmlReturn_t nvml_write(char *buffer, unsigned int bytes, const char *text)
{
    if (!buffer)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= bytes)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlInit(void)
{
    nvml_retain();
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return sim_nvmlInit();
}

nvmlReturn_t sim_nvmlShutdown(void)
{
    return nvml_release() == 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t result);

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch ((int)result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case 10:
        return "Timeout";
    case NVML_ERROR_LIBRARY_NOT_FOUND:
        return "NVML Shared Library Not Found";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        return "Function Not Found";
    case 25:
        return "Argument Version Mismatch";
    default:
        return "Unknown Error";
    }
}

nvmlReturn_t sim_nvmlSystemGetDriverVersion(char *version, unsigned int bytes)
{
    static const struct {
        int cuda;
        const char *driver;
    } releases[] = {{13000, "580.65.06"}, {12040, "550.54.15"}, {12020, "535.54.03"},
                    {12000, "525.60.13"}, {11080, "520.61.05"}, {0, "470.42.01"}};

    for (size_t i = 0;; i++)
        if (version_reported() >= releases[i].cuda)
            return nvml_write(version, bytes, releases[i].driver);
}

nvmlReturn_t sim_nvmlSystemGetNVMLVersion(char *version, unsigned int bytes)
{
    char driver[80], text[96];
    nvmlReturn_t result = sim_nvmlSystemGetDriverVersion(driver, sizeof driver);

    snprintf(text, sizeof text, "%d.%s", version_reported() / 1000, driver);
    return result == NVML_SUCCESS ? nvml_write(version, bytes, text) : result;
}

nvmlReturn_t sim_nvmlSystemGetCudaDriverVersion(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = version_reported();
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int bytes)
{
    char path[32], text[256];

    if (!name || bytes == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NVML_ERROR_NOT_FOUND;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length < 0 ? 0 : length] = '\0';
    snprintf(name, bytes, "%s", text);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlGetExcludedDeviceCount(unsigned int *count)
{
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

/* Events never happen. */
static int event_set;

nvmlReturn_t sim_nvmlEventSetCreate(void **set)
{
    if (!set)
        return NVML_ERROR_INVALID_ARGUMENT;
    *set = &event_set;
    return NVML_SUCCESS;
}

nvmlReturn_t sim_nvmlEventSetFree(void *set)
{
    return set == &event_set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t sim_nvmlEventSetWait(void *set, void *data, unsigned int milliseconds)
{
    (void)data;
    if (set != &event_set)
        return NVML_ERROR_INVALID_ARGUMENT;
    usleep(1000 * (milliseconds < 1000 ? milliseconds : 1000));
    return NVML_ERROR_TIMEOUT;
}

nvmlReturn_t sim_nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, void *set)
{
    (void)types;
    return nvml_gpu(device) && set == &event_set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t sim_nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    if (!nvml_gpu(device) || !types)
        return NVML_ERROR_INVALID_ARGUMENT;
    *types = 0;
    return NVML_SUCCESS;
}
