//! A BERT-family embedding model from a folder: `config.json`, `tokenizer.json` and `model.safetensors`, as they are published
//! for most small embedding models. Run by candle, in 32-bit floats.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{DType, Device, Tensor, safetensors};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use okt_config::{Embedding, Pooling};
use okt_model::Cause;
use serde_json::Value;
use tokenizers::{Tokenizer, TruncationParams};

pub(super) struct Folder {
    id: String,
    path: PathBuf,
    pooling: Pooling,
    query_prefix: String,
    max_tokens: u32,
    /// Read when first needed, and kept.
    loaded: Mutex<Option<Arc<Loaded>>>,
}

pub(super) struct Loaded {
    model: BertModel,
    tokenizer: Tokenizer,
}

impl Folder {
    /// `None` where the settings name no folder.
    pub(super) fn new(settings: &Embedding) -> Option<Self> {
        Some(Self {
            id: settings.model.clone(),
            path: settings.path.clone()?,
            pooling: settings.pooling,
            query_prefix: settings.query_prefix.clone(),
            max_tokens: settings.max_tokens,
            loaded: Mutex::default(),
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn query_prefix(&self) -> &str {
        &self.query_prefix
    }

    pub(super) fn max_tokens(&self) -> u64 {
        self.max_tokens.into()
    }

    /// One vector of length 1 for each text, in their order.
    pub(super) fn encode(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Cause> {
        let loaded = self.loaded()?;
        let encoded = loaded.tokenizer.encode_batch(texts.to_vec(), true)?;
        let tokens: Vec<&[u32]> = encoded.iter().map(tokenizers::Encoding::get_ids).collect();
        Ok(loaded.forward(&tokens, self.pooling)?)
    }

    /// A folder that can't be read now may be complete the next time.
    pub(super) fn loaded(&self) -> Result<Arc<Loaded>, Cause> {
        let mut kept = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = &*kept {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(self.load()?);
        *kept = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    fn load(&self) -> Result<Loaded, Cause> {
        let read = |name: &str| {
            let path = self.path.join(name);
            fs::read(&path).map_err(|error| format!("can't read {}: {error}", path.display()))
        };
        let unfit = |name: &str, error: &dyn std::fmt::Display| {
            format!("{}: {error}", self.path.join(name).display())
        };
        let settings: Value =
            serde_json::from_slice(&read("config.json")?).map_err(|error| unfit("config.json", &error))?;
        let kind = settings["model_type"].as_str().unwrap_or("bert");
        if kind != "bert" {
            let why = format!("model_type is {kind:?}, and only \"bert\" can be run");
            return Err(unfit("config.json", &why).into());
        }
        let config: Config =
            serde_json::from_value(settings).map_err(|error| unfit("config.json", &error))?;
        let mut tokenizer = Tokenizer::from_bytes(read("tokenizer.json")?)
            .map_err(|error| unfit("tokenizer.json", &error))?;
        // Padded here, to the longest of those that are read together.
        let max_length = usize::try_from(self.max_tokens)?.min(config.max_position_embeddings);
        tokenizer
            .with_padding(None)
            .with_truncation(Some(TruncationParams { max_length, ..Default::default() }))?;
        let weights = "model.safetensors";
        let tensors = safetensors::load_buffer(&read(weights)?, &Device::Cpu)
            .map_err(|error| unfit(weights, &error))?;
        let tensors = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
        let model = BertModel::load(tensors, &config).map_err(|error| unfit(weights, &error))?;
        tracing::info!(model = self.id, layers = config.num_hidden_layers, "embedding model loaded");
        Ok(Loaded { model, tokenizer })
    }
}

impl Loaded {
    fn forward(&self, texts: &[&[u32]], pooling: Pooling) -> candle_core::Result<Vec<Vec<f32>>> {
        let longest = texts.iter().map(|ids| ids.len()).max().unwrap_or(0);
        let shape = (texts.len(), longest);
        let padded = |fill: &dyn Fn(u32) -> u32| {
            let row = |ids: &&[u32]| {
                let mut row: Vec<u32> = ids.iter().map(|id| fill(*id)).collect();
                row.resize(longest, 0);
                row
            };
            Tensor::from_vec(texts.iter().flat_map(row).collect::<Vec<u32>>(), shape, &Device::Cpu)
        };
        let (ids, mask) = (padded(&|id| id)?, padded(&|_| 1)?);
        let hidden = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let pooled = match pooling {
            Pooling::Cls => hidden.narrow(1, 0, 1)?.squeeze(1)?,
            // The sum does as well: only its direction is kept.
            Pooling::Mean => hidden.broadcast_mul(&mask.to_dtype(DType::F32)?.unsqueeze(2)?)?.sum(1)?,
        };
        let length = pooled.sqr()?.sum_keepdim(1)?.sqrt()?;
        pooled.broadcast_div(&length)?.to_vec2()
    }
}
