#include "cmake/torch_pch.h"
