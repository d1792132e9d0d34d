"""Small networks of transformers with random weights."""
import transformers as hf
from reference_inputs import CLASSES, VOCABULARY, image, mask, real, tokens

LENGTH = 7
ENCODER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
           "vocab_size": VOCABULARY, "max_position_embeddings": 16, "num_labels": CLASSES}
DECODER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
           "intermediate_size": 32, "vocab_size": VOCABULARY, "max_position_embeddings": 16}
IDS = {"input_ids": tokens(LENGTH)}
MASKED = IDS | {"attention_mask": mask(LENGTH)}
PAIR = MASKED | {"decoder_input_ids": tokens(5)}


def built(model, config, **options):
    """Without keys and values of a past."""
    return lambda: model(config(**options, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=1))


CASES = {
    "bert": (built(hf.BertForSequenceClassification, hf.BertConfig, **ENCODER), [], MASKED),
    "bert_masked_lm": (built(hf.BertForMaskedLM, hf.BertConfig, **ENCODER), [], MASKED),
    "distilbert": (built(hf.DistilBertForSequenceClassification, hf.DistilBertConfig, dim=16, n_layers=2, n_heads=2,
                         hidden_dim=32, vocab_size=VOCABULARY, max_position_embeddings=16, num_labels=CLASSES),
                   [], MASKED),
    "roberta": (built(hf.RobertaForTokenClassification, hf.RobertaConfig, **ENCODER), [], MASKED),
    "electra": (built(hf.ElectraForTokenClassification, hf.ElectraConfig, embedding_size=8, **ENCODER), [], MASKED),
    "albert": (built(hf.AlbertForSequenceClassification, hf.AlbertConfig, embedding_size=8, **ENCODER), [], MASKED),
    "deberta_v2": (built(hf.DebertaV2ForTokenClassification, hf.DebertaV2Config, relative_attention=True,
                         position_buckets=4, pos_att_type=["p2c", "c2p"], **ENCODER), [], MASKED),
    "gpt2": (built(hf.GPT2LMHeadModel, hf.GPT2Config, n_embd=16, n_layer=2, n_head=2, n_positions=16,
                   vocab_size=VOCABULARY), [], IDS),
    "gpt_neox": (built(hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig, hidden_size=16, num_hidden_layers=2,
                       num_attention_heads=2, intermediate_size=32, vocab_size=VOCABULARY,
                       max_position_embeddings=16), [], IDS),
    "llama": (built(hf.LlamaForCausalLM, hf.LlamaConfig, **DECODER), [], IDS),
    "qwen3": (built(hf.Qwen3ForCausalLM, hf.Qwen3Config, head_dim=4, **DECODER), [], MASKED),
    "opt": (built(hf.OPTForCausalLM, hf.OPTConfig, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                  ffn_dim=32, word_embed_proj_dim=16, vocab_size=VOCABULARY, max_position_embeddings=16),
            [], MASKED),
    "t5": (built(hf.T5ForConditionalGeneration, hf.T5Config, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
                 vocab_size=VOCABULARY, decoder_start_token_id=0), [], PAIR),
    "bart": (built(hf.BartForConditionalGeneration, hf.BartConfig, d_model=16, encoder_layers=1, decoder_layers=1,
                   encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
                   vocab_size=VOCABULARY, max_position_embeddings=16, decoder_start_token_id=1,
                   forced_eos_token_id=None), [], PAIR),
    "hf_vit": (built(hf.ViTForImageClassification, hf.ViTConfig, hidden_size=16, num_hidden_layers=2,
                     num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=4, num_labels=CLASSES),
               [], {"pixel_values": image(16)}),
    "hf_convnext_v2": (built(hf.ConvNextV2ForImageClassification, hf.ConvNextV2Config, hidden_sizes=[8, 16],
                             depths=[1, 1], num_stages=2, num_labels=CLASSES), [], {"pixel_values": image()}),
    "segformer": (built(hf.SegformerForSemanticSegmentation, hf.SegformerConfig, num_encoder_blocks=2, depths=[1, 1],
                        sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
                        num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=CLASSES),
                  [], {"pixel_values": image()}),
    "wav2vec2": (built(hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config, hidden_size=16, num_hidden_layers=1,
                       num_attention_heads=2, intermediate_size=32, conv_dim=(8, 8), conv_stride=(5, 2),
                       conv_kernel=(10, 3), num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
                       vocab_size=VOCABULARY, mask_time_prob=0.0, layerdrop=0.0, apply_spec_augment=False),
                 [], {"input_values": real(200)}),
}
