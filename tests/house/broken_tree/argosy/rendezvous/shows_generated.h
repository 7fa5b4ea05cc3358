#pragma once

#include "store.pb.h"
