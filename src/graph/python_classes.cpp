// The Python classes that a model.py defines beside torch's.
#include "src/graph/python_classes.h"

#include <map>

namespace tutti::graph {
namespace {

constexpr std::string_view kResidual = R"(class Residual(nn.Module):
    """The sum of what body and shortcut make of the input."""

    def __init__(self, body, shortcut):
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x):
        return self.body(x) + self.shortcut(x)
)";

constexpr std::string_view kBranches = R"(class Branches(nn.Module):
    """Several paths from one input, concatenated along `dim` or added."""

    def __init__(self, *paths, join, dim=1):
        super().__init__()
        self.paths = nn.ModuleList(paths)
        self.join = join
        self.dim = dim

    def forward(self, x):
        results = [path(x) for path in self.paths]
        return torch.cat(results, self.dim) if self.join == 'concat' else sum(results[1:], results[0])
)";

constexpr std::string_view kReshape = R"(class Reshape(nn.Module):
    """Gives each sample another shape."""

    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return x.reshape(-1, *self.shape)
)";

constexpr std::string_view kLeNet5 = R"(class LeNet5(nn.Module):
    def __init__(self, channels, features, padding, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=padding)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(features, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x).relu(), 2)
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        x = self.fc1(x.flatten(1)).relu()
        return self.fc3(self.fc2(x).relu())
)";

constexpr std::string_view kResNet = R"(class BasicBlock(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class ResNet(nn.Module):
    def __init__(self, channels, blocks, width, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = self.stage(blocks, width, width, 1)
        self.layer2 = self.stage(blocks, width, 2 * width, 2)
        self.layer3 = self.stage(blocks, 2 * width, 4 * width, 2)
        self.fc = nn.Linear(4 * width, classes)

    @staticmethod
    def stage(blocks, channels, width, stride):
        first = BasicBlock(channels, width, stride)
        return nn.Sequential(first, *(BasicBlock(width, width, 1) for _ in range(blocks - 1)))

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))
)";

constexpr std::string_view kVgg11 = R"(class VGG11(nn.Module):
    def __init__(self, channels, classes, hidden, batch_norm, dropout):
        super().__init__()
        features = []
        for width in (64, 'pool', 128, 'pool', 256, 256, 'pool', 512, 512, 'pool', 512, 512, 'pool'):
            if width == 'pool':
                features.append(nn.MaxPool2d(2))
                continue
            features.append(nn.Conv2d(channels, width, 3, padding=1))
            features += [nn.BatchNorm2d(width), nn.ReLU()] if batch_norm else [nn.ReLU()]
            channels = width
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, classes))

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)).flatten(1))
)";

}  // namespace

std::string_view python_class(const std::string& name) {
  static const std::map<std::string, std::string_view> classes = {{"Residual", kResidual}, {"Branches", kBranches},
                                                                  {"Reshape", kReshape},   {"LeNet5", kLeNet5},
                                                                  {"ResNet", kResNet},     {"VGG11", kVgg11}};
  return classes.at(name);
}

}  // namespace tutti::graph
