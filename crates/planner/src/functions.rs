//! The functions that SQL may call, and how DataFusion is configured to plan them.

mod to_timestamp;

use std::sync::{Arc, LazyLock};

use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;
use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::optimizer::Analyzer;
use datafusion::prelude::SessionConfig;

use crate::window;

/// DataFusion's functions and those for JSON. Immutable; shared by all planners of the process.
pub struct Functions {
    state: SessionState,
    relation_planners: Vec<Arc<dyn RelationPlanner>>,
}

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(Functions::new);

impl Functions {
    pub fn get() -> &'static Self {
        &FUNCTIONS
    }

    fn new() -> Self {
        let config = config();
        // Functions that depend on the time zone find it here when an expression is lowered.
        let mut props = ExecutionProps::new();
        props.config_options = Some(Arc::new(config.clone()));
        let scalar = SessionStateDefaults::default_scalar_functions();
        let mended = to_timestamp::mended(&scalar);
        let mut state = SessionStateBuilder::new()
            .with_config(SessionConfig::from(config))
            .with_execution_props(props)
            .with_scalar_functions(
                // Of two functions with one name the later holds.
                [scalar, mended, window::scalar_udfs()].concat(),
            )
            .with_higher_order_functions(SessionStateDefaults::default_higher_order_functions())
            .with_aggregate_functions(SessionStateDefaults::default_aggregate_functions())
            .with_window_functions(SessionStateDefaults::default_window_functions())
            .with_expr_planners(SessionStateDefaults::default_expr_planners())
            .build();
        datafusion_functions_json::register_all(&mut state)
            .expect("the JSON functions have names of their own");
        Self {
            state,
            relation_planners: window::relation_planners(),
        }
    }

    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// The options under which everything is planned: time zone UTC, strings as `Utf8`.
    pub fn config(&self) -> &Arc<ConfigOptions> {
        self.state.config_options()
    }

    /// DataFusion's analyzer with the rewrites that the JSON functions need.
    pub fn analyzer(&self) -> &Analyzer {
        self.state.analyzer()
    }

    /// Planners of what may stand in FROM besides tables and queries.
    pub fn relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relation_planners
    }

    /// Names of all functions that can be called.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let state = &self.state;
        let scalar = state
            .scalar_functions()
            .keys()
            .chain(state.higher_order_functions().keys());
        scalar
            .chain(state.aggregate_functions().keys())
            .map(String::as_str)
    }

    pub fn rewrites(&self) -> &[Arc<dyn FunctionRewrite + Send + Sync>] {
        self.analyzer().function_rewrites()
    }
}

fn config() -> ConfigOptions {
    let mut config = ConfigOptions::new();
    // Without it TIMESTAMP WITH TIME ZONE silently loses its zone.
    config.execution.time_zone = Some("+00:00".to_string());
    config.sql_parser.map_string_types_to_utf8view = false;
    config.sql_parser.collect_spans = true;
    // An uncorrelated scalar subquery would stay an expression that is executed once.
    config
        .optimizer
        .enable_physical_uncorrelated_scalar_subquery = false;
    config
}
