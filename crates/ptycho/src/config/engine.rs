//! An entry of `[[ptycho.engine]]`. One table for all engines: keys that an engine does not have are refused by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-synonyms" = { "difference_map": "DM", "maximum_likelihood": "ML", "pie": "ePIE", "least_squares": "LSQML" }))]
pub enum EngineName {
    /// The difference map.
    #[default]
    #[serde(rename = "DM")]
    Dm,
    /// Relaxed averaged alternating reflections.
    #[serde(rename = "RAAR")]
    Raar,
    /// Extended ptychographical iterative engine.
    #[serde(rename = "ePIE")]
    Epie,
    /// Regularised form of ePIE.
    #[serde(rename = "rPIE")]
    Rpie,
    /// Semi-implicit relaxed Douglas-Rachford.
    #[serde(rename = "SDR")]
    Sdr,
    /// Maximum likelihood by conjugate gradients.
    #[serde(rename = "ML")]
    Ml,
    /// Least-squares maximum likelihood.
    #[serde(rename = "LSQML")]
    Lsqml,
}

impl EngineName {
    /// Name of the engine in the input.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dm => "DM",
            Self::Raar => "RAAR",
            Self::Epie => "ePIE",
            Self::Rpie => "rPIE",
            Self::Sdr => "SDR",
            Self::Ml => "ML",
            Self::Lsqml => "LSQML",
        }
    }

    /// Returns true if the engine sums over views before it updates the object.
    pub fn sums_objects(self) -> bool {
        matches!(self, Self::Dm | Self::Raar | Self::Ml | Self::Lsqml)
    }

    /// Returns true if the engine keeps exit waves between iterations.
    pub fn keeps_exits(self) -> bool {
        matches!(self, Self::Dm | Self::Raar | Self::Sdr)
    }
}

/// Models of noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(extend("x-synonyms" = { "euclidean": "euclid", "amplitude": "euclid" }))]
pub enum NoiseName {
    /// Variance: counts plus one.
    #[default]
    Gaussian,
    /// Poisson statistics.
    Poisson,
    /// Distance of moduli.
    Euclid,
}

/// An engine with its settings. Keys left out take the engine's defaults.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineConfig {
    /// Engine: the algorithm.
    pub name: EngineName,
    /// Iterations (100).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub iterations: Option<u64>,
    /// DM: 1 is the difference map, 0 alternating projections. rPIE: weight of the largest illumination, 0 to 1 (0.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// RAAR: relaxation (0.75).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.05, max = 1.0))]
    pub beta: Option<f64>,
    /// SDR: relaxation of the reflection (0.25); noise accumulates from `sigma tau` = 0.5 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// SDR: relaxation of the step (0.75).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tau: Option<f64>,
    /// ePIE, rPIE, LSQML: step of the object (1; rPIE 0.25, LSQML 0.9). SDR: weight of the local illumination (0.9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_step: Option<f64>,
    /// ePIE, rPIE, LSQML: step of the probe (1; rPIE 0.25, LSQML 0.9). SDR: weight of the local transmission (0.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_step: Option<f64>,
    /// ePIE, rPIE: the largest transmission is the whole object's, not a view's (false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_norm_is_global: Option<bool>,
    /// ePIE, rPIE, SDR, LSQML: views updated together (1; LSQML a tenth of the views).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub batch: Option<usize>,
    /// LSQML: part of the largest illumination in the preconditioner (0.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damping: Option<f64>,
    /// Iteration from which the probe is updated (2; ePIE, rPIE, SDR, LSQML 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_update_start: Option<u64>,
    /// Iteration from which the object is updated (0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_update_start: Option<u64>,
    /// DM, RAAR, ML: area of the disc that the probe may fill, as part of the frame; 0 is all (none; PtyPy 0.7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub probe_support: Option<f64>,
    /// Area of the disc that the probe may fill in Fourier space, as part of the frame (none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub probe_fourier_support: Option<f64>,
    /// Distance of the probe's centre from the middle, pixels, beyond which it and its objects are moved by whole pixels,
    /// around the edges (never). Far field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub probe_center_tolerance: Option<f64>,
    /// Least and largest modulus of the object (none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_clip: Option<[f64; 2]>,
    /// DM, RAAR: smoothing of the old object, pixels (none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub object_smooth: Option<f64>,
    /// DM, RAAR: weight of the old object in counts of the mean frame (1e-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub object_inertia: Option<f64>,
    /// DM, RAAR: weight of the old probe in views (1e-9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub probe_inertia: Option<f64>,
    /// DM, RAAR: most passes of the overlap loop (10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub overlap_passes: Option<u32>,
    /// DM, RAAR: change of the probe at which the loop ends (0.05).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub overlap_tolerance: Option<f64>,
    /// DM, RAAR: the object is updated before the probe (true).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_first: Option<bool>,
    /// DM, RAAR: relaxation of the modulus, from which the bound follows (0.05 with PtyPy's conventions).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub fourier_relax: Option<f64>,
    /// DM, RAAR: bound on the mean squared deviation of the moduli (half of each frame's photon noise: 0.125 if bright, less if
    /// dark).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub fourier_bound: Option<f64>,
    /// Marks that each view has a bound of its own, which the stages are told apart from the input.
    #[serde(skip)]
    pub bounds_of_views: bool,
    /// Noise model of ML (gaussian) and LSQML (euclid, or poisson).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseName>,
    /// ML: the brightness of each frame is a free factor (false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floating_intensities: Option<bool>,
    /// ML: regularisation by squared differences of the object's neighbours (none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub smoothness: Option<f64>,
    /// ML: the probe's part of the gradient is scaled to the object's (true; PtyPy false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_preconditioner: Option<bool>,
    /// ML: factor on the probe's part of the gradient (1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub probe_scale: Option<f64>,
    /// ML: gradients are divided by the light on a pixel of the object, the transmission of a pixel of the probe (false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wavefield_preconditioner: Option<bool>,
    /// ML: damping added to the light, counts (0.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wavefield_object_damping: Option<f64>,
    /// ML: damping added to the transmission of the object, summed over the frames (0.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wavefield_probe_damping: Option<f64>,
    /// ML: successive expansions along a direction (1); about eight reach the minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub line_steps: Option<u32>,
    /// ML: smoothing of the object's gradient at the start, pixels (none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub smooth_gradient: Option<f64>,
    /// ML: factor on the smoothing at each iteration (0.95; PtyPy 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub smooth_gradient_decay: Option<f64>,
    /// Likelihood error in every iteration (true), for a transform in DM and RAAR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_likelihood: Option<bool>,
    /// Refinement of positions (none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions: Option<PositionConfig>,
}

impl EngineConfig {
    /// An engine with its defaults.
    pub fn new(name: EngineName, iterations: u64) -> Self {
        Self { name, iterations: Some(iterations), ..Self::default() }
    }

    /// Iterations.
    pub fn iterations(&self) -> u64 {
        self.iterations.unwrap_or(100)
    }

    /// Keys that are set, with the engines that use them.
    pub fn set_keys(&self) -> Vec<(&'static str, &'static [EngineName])> {
        use EngineName::{Dm, Epie, Lsqml, Ml, Raar, Rpie, Sdr};
        const PROJECTION: &[EngineName] = &[Dm, Raar];
        const STEPPED: &[EngineName] = &[Epie, Rpie, Sdr, Lsqml];
        let mut keys: Vec<(&'static str, &'static [EngineName])> = Vec::new();
        let mut put = |set: bool, key, engines| {
            if set {
                keys.push((key, engines));
            }
        };
        put(self.alpha.is_some(), "alpha", &[Dm, Rpie]);
        put(self.beta.is_some(), "beta", &[Raar]);
        put(self.sigma.is_some(), "sigma", &[Sdr]);
        put(self.tau.is_some(), "tau", &[Sdr]);
        put(self.object_step.is_some(), "object_step", STEPPED);
        put(self.probe_step.is_some(), "probe_step", STEPPED);
        put(self.object_norm_is_global.is_some(), "object_norm_is_global", &[Epie, Rpie]);
        put(self.batch.is_some(), "batch", STEPPED);
        put(self.damping.is_some(), "damping", &[Lsqml]);
        put(self.object_smooth.is_some(), "object_smooth", PROJECTION);
        put(self.object_inertia.is_some(), "object_inertia", PROJECTION);
        put(self.probe_inertia.is_some(), "probe_inertia", PROJECTION);
        put(self.overlap_passes.is_some(), "overlap_passes", PROJECTION);
        put(self.overlap_tolerance.is_some(), "overlap_tolerance", PROJECTION);
        put(self.object_first.is_some(), "object_first", PROJECTION);
        put(self.fourier_relax.is_some(), "fourier_relax", PROJECTION);
        put(self.fourier_bound.is_some(), "fourier_bound", PROJECTION);
        // ML goes by it.
        put(self.log_likelihood.is_some(), "log_likelihood", &[Dm, Raar, Epie, Rpie, Sdr, Lsqml]);
        put(self.noise.is_some(), "noise", &[Ml, Lsqml]);
        put(self.floating_intensities.is_some(), "floating_intensities", &[Ml]);
        put(self.smoothness.is_some(), "smoothness", &[Ml]);
        put(self.scale_preconditioner.is_some(), "scale_preconditioner", &[Ml]);
        put(self.probe_scale.is_some(), "probe_scale", &[Ml]);
        put(self.wavefield_preconditioner.is_some(), "wavefield_preconditioner", &[Ml]);
        put(self.wavefield_object_damping.is_some(), "wavefield_object_damping", &[Ml]);
        put(self.wavefield_probe_damping.is_some(), "wavefield_probe_damping", &[Ml]);
        put(self.line_steps.is_some(), "line_steps", &[Ml]);
        put(self.smooth_gradient.is_some(), "smooth_gradient", &[Ml]);
        put(self.smooth_gradient_decay.is_some(), "smooth_gradient_decay", &[Ml]);
        keys
    }
}

/// Method of position refinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PositionMethod {
    /// Random trials of shrinking reach.
    #[default]
    Annealing,
    /// Trials on a shrinking grid.
    Grid,
    /// Steps along the derivative, below a pixel.
    Gradient,
}

/// The affine part of all moves together: shift, scaling, rotation and shear. Frames hardly determine it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AffinePart {
    /// Removed at the end: reported positions have independent errors.
    #[default]
    Removed,
    /// Kept and reported, for a stage of doubtful scale or rotation.
    Kept,
}

/// Refinement of the positions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PositionConfig {
    /// Method of refinement.
    pub method: PositionMethod,
    /// First iteration with a refinement.
    pub start: u64,
    /// Iteration before which refinement ends; default the engine's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<u64>,
    /// Iterations between refinements.
    #[schemars(range(min = 1))]
    pub every: u64,
    /// Reach of a trial at the start, m, shrinking to zero until `stop`; default two pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amplitude: Option<f64>,
    /// Largest distance of a view from its reported position, m; default eight pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Trials per view and refinement (annealing).
    #[schemars(range(min = 1, max = 1000))]
    pub trials: u32,
    /// Fraction of the computed step that is taken (gradient).
    pub step: f64,
    /// Affine part of the moves.
    pub affine: AffinePart,
}

impl Default for PositionConfig {
    fn default() -> Self {
        Self {
            method: PositionMethod::Annealing,
            start: 50,
            stop: None,
            every: 10,
            amplitude: None,
            limit: None,
            trials: 4,
            step: 0.5,
            affine: AffinePart::Removed,
        }
    }
}
