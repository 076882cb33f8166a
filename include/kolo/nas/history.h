// The history of a training: the values of each metric, one per epoch.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kolo::nas {

/// "loss", "val_loss", "r2", "val_r2" … one value an epoch; where there are several outputs,
/// metrics have their name in front ("output_0_r2"). At the end also n_parameters, training_time
/// and predict_time (seconds), one value each.
using History = std::map<std::string, std::vector<double>>;

}  // namespace kolo::nas
