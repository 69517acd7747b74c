#!/bin/sh
# The base model on a Vulkan device, in less than ten minutes:
#   bench/vulkan.sh BASE_FOLDER BIN_FOLDER [--device vulkan:0] [--batches 1,8,32,128] ...
# BASE_FOLDER is that of export_random.py. Needs python3 with numpy; where onnxruntime is installed it is measured too.
exec python3 "$(dirname "$0")/vulkan.py" "$@"
