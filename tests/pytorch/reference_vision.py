"""Narrow networks of torchvision and timm, from the packages' own classes. Stochastic depth has the rate 0."""
from functools import partial

import timm
import torch
from reference_inputs import CLASSES, image, real
from timm.models import byobnet, mlp_mixer, nfnet
from torch import nn
from torchvision import models
from torchvision.models import (convnext, densenet, efficientnet, maxvit, mobilenetv2, mobilenetv3, regnet,
                                resnet, shufflenetv2, squeezenet, swin_transformer, vgg, vision_transformer)
from torchvision.models.googlenet import BasicConv2d, GoogLeNetOutputs, Inception, InceptionAux
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.models.segmentation import deeplabv3, fcn, lraspp
from torchvision.models.video import resnet as video_resnet
from torchvision.ops.misc import Conv2dNormActivation

DIVISOR = 16
torch.utils._pytree._register_namedtuple(GoogLeNetOutputs, serialized_type_name="torchvision.GoogLeNetOutputs")


class NarrowResNet(resnet.ResNet):
    """A stem of 8 channels, and a sixteenth of the planes after it."""

    def __init__(self, block, layers, **options):
        super().__init__(block, layers, num_classes=CLASSES, **options)
        self.conv1 = nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.fc = nn.Linear(512 // DIVISOR * block.expansion, CLASSES)

    def _make_layer(self, block, planes, *args, **options):
        if planes == 64:  # the first stage
            self.inplanes = 8
        return super()._make_layer(block, planes // DIVISOR, *args, **options)


def resnet_backbone(**options):
    body = NarrowResNet(resnet.BasicBlock, [1, 1, 1, 1], **options)
    return IntermediateLayerGetter(body, {"layer3": "aux", "layer4": "out"})


def made_on_meta(build):
    """A network whose wide layers, never filled with numbers, are to be replaced."""
    with torch.device("meta"):
        return build()


def vgg_bn():
    model = made_on_meta(lambda: vgg.VGG(nn.Identity(), init_weights=False))
    model.features = vgg.make_layers([8, "M", 8, 16, "M", 16, "M"], batch_norm=True)
    model.avgpool = nn.AdaptiveAvgPool2d(3)
    model.classifier = nn.Sequential(nn.Linear(16 * 9, 24), nn.ReLU(True), nn.Dropout(), nn.Linear(24, CLASSES))
    return model


def alexnet():
    model = made_on_meta(models.AlexNet)
    model.features = nn.Sequential(
        nn.Conv2d(3, 8, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        nn.Conv2d(8, 12, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2))
    model.avgpool = nn.AdaptiveAvgPool2d(2)
    model.classifier = nn.Sequential(nn.Dropout(), nn.Linear(48, 16), nn.ReLU(inplace=True), nn.Linear(16, CLASSES))
    return model


def squeezenet1_1():
    model = made_on_meta(lambda: models.SqueezeNet("1_1"))
    pool = partial(nn.MaxPool2d, 3, stride=2, ceil_mode=True)
    model.features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(inplace=True), pool(),
                                   squeezenet.Fire(8, 4, 8, 8), squeezenet.Fire(16, 4, 8, 8), pool(),
                                   squeezenet.Fire(16, 6, 12, 12))
    model.classifier = nn.Sequential(nn.Dropout(), nn.Conv2d(24, CLASSES, 1), nn.ReLU(inplace=True),
                                     nn.AdaptiveAvgPool2d((1, 1)))
    return model


def mobilenet_v2():
    model = made_on_meta(lambda: mobilenetv2.MobileNetV2(inverted_residual_setting=[[1, 8, 1, 1]]))
    model.features = nn.Sequential(
        Conv2dNormActivation(3, 8, stride=2, activation_layer=nn.ReLU6),
        mobilenetv2.InvertedResidual(8, 8, 1, 1), mobilenetv2.InvertedResidual(8, 12, 2, 4),
        mobilenetv2.InvertedResidual(12, 12, 1, 4), mobilenetv2.InvertedResidual(12, 16, 2, 4),
        Conv2dNormActivation(16, 32, kernel_size=1, activation_layer=nn.ReLU6))
    model.classifier = nn.Sequential(nn.Dropout(), nn.Linear(32, CLASSES))
    return model


def mobilenet_v3():
    block = partial(mobilenetv3.InvertedResidualConfig, dilation=1, width_mult=1.0)
    setting = [block(8, 3, 16, 8, True, "RE", 2), block(8, 3, 24, 12, False, "RE", 2),
               block(12, 5, 24, 12, True, "HS", 1), block(12, 5, 24, 16, True, "HS", 2)]
    return mobilenetv3.MobileNetV3(setting, last_channel=24, num_classes=CLASSES)


def mnasnet():
    """The stem and the first two of the six stacks."""
    model = models.MNASNet(0.1, num_classes=CLASSES)
    width = model.layers[9][-1].layers[-1].num_features
    model.layers = nn.Sequential(*model.layers[:9], model.layers[9][:1], nn.Conv2d(width, 32, 1, bias=False),
                                 nn.BatchNorm2d(32), nn.ReLU(inplace=True))
    model.classifier[-1] = nn.Linear(32, CLASSES)
    return model


def efficientnet_b():
    block = partial(efficientnet.MBConvConfig, width_mult=1.0, depth_mult=1.0)
    return efficientnet.EfficientNet(
        [block(1, 3, 1, 8, 8, 1), block(4, 3, 2, 8, 12, 2), block(4, 5, 2, 12, 16, 1)],
        dropout=0.2, stochastic_depth_prob=0.0, num_classes=CLASSES, last_channel=32)


def efficientnet_v2():
    return efficientnet.EfficientNet(
        [efficientnet.FusedMBConvConfig(1, 3, 1, 8, 8, 1), efficientnet.FusedMBConvConfig(4, 3, 2, 8, 16, 2),
         efficientnet.MBConvConfig(4, 3, 2, 16, 16, 1)],
        dropout=0.2, stochastic_depth_prob=0.0, num_classes=CLASSES, last_channel=32)


def regnet_y():
    blocks = regnet.BlockParams([1, 2, 1], [8, 16, 24], [4, 8, 8], [1.0, 1.0, 1.0], [2, 2, 2], se_ratio=0.25)
    return regnet.RegNet(blocks, num_classes=CLASSES, stem_width=8)


def convnext_small():
    block = convnext.CNBlockConfig
    return convnext.ConvNeXt([block(8, 16, 1), block(16, 24, 2), block(24, None, 1)], layer_scale=0.1,
                             num_classes=CLASSES)


class NarrowInceptionAux(InceptionAux):
    def __init__(self, in_channels):
        nn.Module.__init__(self)
        self.conv = BasicConv2d(in_channels, 4, kernel_size=1)
        self.fc1 = nn.Linear(64, 16)
        self.fc2 = nn.Linear(16, CLASSES)
        self.dropout = nn.Dropout()


class ShortGoogLeNet(nn.Module):
    """Three inception blocks, auxiliary heads after the first and the second, in training only."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(BasicConv2d(3, 8, kernel_size=7, stride=2, padding=3),
                                  nn.MaxPool2d(3, stride=2, ceil_mode=True))
        self.inception1 = Inception(8, 4, 6, 8, 2, 4, 4)
        self.inception2 = Inception(20, 6, 6, 10, 2, 4, 4)
        self.pool = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.inception3 = Inception(24, 8, 8, 12, 2, 4, 8)
        self.aux1, self.aux2 = NarrowInceptionAux(20), NarrowInceptionAux(24)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(32, CLASSES))

    def forward(self, x):
        first = self.inception1(self.stem(x))
        second = self.inception2(first)
        logits = self.head(self.inception3(self.pool(second)))
        return GoogLeNetOutputs(logits, self.aux2(second), self.aux1(first)) if self.training else logits


def fcn_resnet():
    return fcn.FCN(resnet_backbone(), fcn.FCNHead(32, CLASSES), fcn.FCNHead(16, CLASSES))


def deeplab_v3():
    head = nn.Sequential(deeplabv3.ASPP(32, [1, 2], 8), nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8),
                         nn.ReLU(), nn.Conv2d(8, CLASSES, 1))
    backbone = IntermediateLayerGetter(NarrowResNet(resnet.BasicBlock, [1, 1, 1, 1]), {"layer4": "out"})
    return deeplabv3.DeepLabV3(backbone, head)


def lraspp_mobilenet():
    backbone = IntermediateLayerGetter(mobilenet_v3().features, {"1": "low", "4": "high"})
    return lraspp.LRASPP(backbone, 8, 16, CLASSES, inter_channels=8)


def video_r2plus1d():
    class Stem(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Conv3d(3, 8, (3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), bias=False),
                             nn.BatchNorm3d(8), nn.ReLU(inplace=True))

    class Narrow(video_resnet.VideoResNet):
        def _make_layer(self, block, conv_builder, planes, blocks, stride=1):
            if planes == 64:  # the first stage
                self.inplanes = 8
            return super()._make_layer(block, conv_builder, planes // (2 * DIVISOR), blocks, stride)

    model = Narrow(video_resnet.BasicBlock, [video_resnet.Conv3DSimple, video_resnet.Conv2Plus1D] * 2, [1, 1, 1, 1],
                   Stem, num_classes=CLASSES)
    model.fc = nn.Linear(512 // (2 * DIVISOR), CLASSES)
    return model


def from_timm(name, **options):
    return lambda: timm.create_model(name, num_classes=CLASSES, **options)


def timm_byobnet():
    block = byobnet.ByoBlockCfg
    config = byobnet.ByoModelCfg(
        blocks=(block(type="edge", d=1, c=8, s=2, gs=0, br=0.5), block(type="dark", d=1, c=16, s=2, gs=0, br=0.5),
                block(type="basic", d=1, c=16, s=2, gs=8, br=0.5), block(type="bottle", d=1, c=24, s=2, gs=4, br=0.5)),
        stem_chs=8, downsample="avg", stem_pool="", act_layer="relu", attn_layer="se",
        attn_kwargs={"rd_ratio": 0.25})
    return byobnet.ByobNet(config, num_classes=CLASSES)


def timm_nfnet():
    config = nfnet.NfCfg(depths=(1, 1, 1, 1), channels=(8, 16, 16, 24), stem_chs=8, group_size=4, attn_layer="se",
                         attn_kwargs={"rd_ratio": 0.25, "rd_divisor": 4}, num_features=32, extra_conv=True,
                         gamma_in_act=True, same_padding=True, skipinit=True)
    return nfnet.NormFreeNet(config, num_classes=CLASSES)


def timm_mixer(**options):
    return lambda: mlp_mixer.MlpMixer(num_classes=CLASSES, img_size=16, patch_size=4, num_blocks=2, embed_dim=16,
                                      **options)


# name: (model, makers of positional inputs, makers of keyword inputs)
CASES = {
    "resnet_basic": (lambda: NarrowResNet(resnet.BasicBlock, [1, 1, 1, 1]), [image(40)], {}),
    "resnext": (lambda: NarrowResNet(resnet.Bottleneck, [1, 1, 1, 1], groups=2, width_per_group=32), [image(40)], {}),
    "alexnet": (alexnet, [image(40)], {}),
    "vgg_bn": (vgg_bn, [image()], {}),
    "densenet": (lambda: densenet.DenseNet(4, (2, 2, 2), 8, bn_size=2, num_classes=CLASSES), [image()], {}),
    "squeezenet": (squeezenet1_1, [image()], {}),
    "mobilenet_v2": (mobilenet_v2, [image()], {}),
    "mobilenet_v3": (mobilenet_v3, [image()], {}),
    "shufflenet_v2": (lambda: shufflenetv2.ShuffleNetV2([2, 1, 1], [8, 16, 16, 24, 32], num_classes=CLASSES),
                      [image()], {}),
    "mnasnet": (mnasnet, [image()], {}),
    "efficientnet": (efficientnet_b, [image()], {}),
    "efficientnet_v2": (efficientnet_v2, [image()], {}),
    "regnet_y": (regnet_y, [image()], {}),
    "convnext": (convnext_small, [image()], {}),
    "vit": (lambda: vision_transformer.VisionTransformer(16, 4, 2, 2, 16, 32, num_classes=CLASSES), [image(16)], {}),
    "swin": (lambda: swin_transformer.SwinTransformer([2, 2], 8, [2, 1], [2, 4], [4, 4], stochastic_depth_prob=0.0,
                                                      num_classes=CLASSES), [image()], {}),
    "swin_v2": (lambda: swin_transformer.SwinTransformer(
        [2, 2], 8, [2, 1], [2, 4], [4, 4], stochastic_depth_prob=0.0, num_classes=CLASSES,
        block=swin_transformer.SwinTransformerBlockV2, downsample_layer=swin_transformer.PatchMergingV2),
                [image()], {}),
    "maxvit": (lambda: maxvit.MaxVit((32, 32), 8, 4, [8], [1], 8, 0.0, num_classes=CLASSES), [image()], {}),
    "googlenet": (ShortGoogLeNet, [image(40)], {}),
    "fcn": (fcn_resnet, [image()], {}),
    "deeplab_v3": (deeplab_v3, [image()], {}),
    "lraspp": (lraspp_mobilenet, [image()], {}),
    "video_r2plus1d": (video_r2plus1d, [real(3, 4, 16, 16)], {}),
    "timm_resnet": (from_timm("test_resnet", stem_width=4, channels=(8, 8, 8, 16)), [image()], {}),
    "timm_efficientnet": (from_timm("test_efficientnet", channel_multiplier=0.25), [image()], {}),
    "timm_convnext": (from_timm("test_convnext", depths=[1, 1, 1, 1], dims=[8, 8, 12, 16]), [image()], {}),
    "timm_byobnet": (timm_byobnet, [image()], {}),
    "timm_nfnet": (timm_nfnet, [image()], {}),
    "timm_mambaout": (from_timm("test_mambaout", depths=(1, 1), dims=(8, 16)), [image()], {}),
    "timm_vit": (from_timm("test_vit", embed_dim=16, depth=2, img_size=16, patch_size=4), [image(16)], {}),
    "timm_vit_relpos": (from_timm("test_vit_relpos", embed_dim=16, num_heads=2, depth=2, img_size=16, patch_size=4),
                        [image(16)], {}),
    "timm_mixer": (timm_mixer(), [image(16)], {}),
    "timm_resmlp": (timm_mixer(mlp_ratio=4, block_layer=mlp_mixer.ResBlock, norm_layer=mlp_mixer.Affine),
                    [image(16)], {}),
    "timm_gmlp": (timm_mixer(mlp_ratio=4, block_layer=mlp_mixer.SpatialGatingBlock, mlp_layer=mlp_mixer.GatedMlp),
                  [image(16)], {}),
}
