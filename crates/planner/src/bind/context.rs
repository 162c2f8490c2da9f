//! What DataFusion's binder asks: which relations, functions and types there are.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result as DataFusionResult, TableReference};
use datafusion::logical_expr::planner::{
    ContextProvider, ExprPlanner, RelationPlanner, TypePlanner,
};
use datafusion::logical_expr::{
    AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
};

use super::fixture::Fixtures;
use super::stream_table::{RelationKind, StreamTable};
use super::view::plan_view;
use crate::catalog::{Catalog, Relation, TableDef, ViewDef};
use crate::error::{Fault, FaultKind, closest};
use crate::functions::Functions;
use crate::types::Types;

/// The relations that a statement may name.
pub struct Scope<'a> {
    pub catalog: &'a Catalog,
    /// Relations whose CREATE was faulty: naming one is no fault of its own.
    pub broken: &'a BTreeSet<String>,
    pub fixtures: Option<&'a Fixtures>,
}

/// The context of binding one statement.
pub struct BindContext<'a> {
    scope: &'a Scope<'a>,
    functions: &'static Functions,
    /// Relations that were asked for, through views too.
    used: RefCell<BTreeSet<String>>,
    views: RefCell<BTreeMap<String, Arc<ViewSource>>>,
    met_broken: Cell<bool>,
}

impl<'a> BindContext<'a> {
    pub fn new(scope: &'a Scope<'a>) -> Self {
        Self {
            scope,
            functions: Functions::get(),
            used: RefCell::default(),
            views: RefCell::default(),
            met_broken: Cell::new(false),
        }
    }

    /// Whether a relation was named whose own statement is faulty.
    pub fn met_broken(&self) -> bool {
        self.met_broken.get()
    }

    pub fn used(&self) -> BTreeSet<String> {
        self.used.borrow().clone()
    }

    fn table(
        &self,
        def: &Arc<TableDef>,
        kind: RelationKind,
    ) -> DataFusionResult<Arc<dyn TableSource>> {
        let def = match kind {
            RelationKind::Table => match self.scope.fixtures {
                Some(fixtures) => fixtures.replace(def)?,
                None => Arc::clone(def),
            },
            RelationKind::Stream => Arc::clone(def),
        };
        if !def.can_read {
            let message = format!("table \"{}\" is written, not read", def.name);
            let fault = Fault::new(FaultKind::InvalidOption, message);
            return Err(external(fault.hint(format!(
                "connector '{}' or the table's type does not allow reading",
                def.connector
            ))));
        }
        Ok(Arc::new(StreamTable { def, kind }))
    }

    fn view(&self, def: &ViewDef) -> DataFusionResult<Arc<dyn TableSource>> {
        if let Some(view) = self.views.borrow().get(&def.name) {
            return Ok(Arc::clone(view) as _);
        }
        let plan = plan_view(self, &def.query, &def.columns)?;
        let view = Arc::new(ViewSource {
            schema: Arc::clone(plan.schema().inner()),
            plan,
        });
        self.views
            .borrow_mut()
            .insert(def.name.clone(), Arc::clone(&view));
        Ok(view)
    }

    fn undefined(&self, name: &str) -> Fault {
        let fault = Fault::new(
            FaultKind::UndefinedTable,
            format!("table \"{name}\" does not exist"),
        );
        match closest(
            name,
            self.scope.catalog.relations.keys().map(String::as_str),
        ) {
            Some(known) => fault.hint(format!("did you mean \"{known}\"?")),
            None => fault,
        }
    }
}

fn external(fault: Fault) -> DataFusionError {
    DataFusionError::External(Box::new(fault))
}

impl ContextProvider for BindContext<'_> {
    fn get_table_source(&self, name: TableReference) -> DataFusionResult<Arc<dyn TableSource>> {
        let TableReference::Bare { table } = &name else {
            let message = format!("\"{name}\" is qualified, and there are no schemas");
            return Err(external(Fault::new(FaultKind::Unsupported, message)));
        };
        let table = table.as_ref();
        if self.scope.broken.contains(table) {
            self.met_broken.set(true);
            return Err(external(self.undefined(table)));
        }
        let Some(relation) = self.scope.catalog.relations.get(table) else {
            return Err(external(self.undefined(table)));
        };
        self.used.borrow_mut().insert(table.to_string());
        match relation {
            Relation::Table(def) => self.table(def, RelationKind::Table),
            Relation::Stream(def) => self.table(def, RelationKind::Stream),
            Relation::View(def) => self.view(def),
        }
    }

    fn get_table_function_source(
        &self,
        name: &str,
        _args: Vec<datafusion::logical_expr::Expr>,
    ) -> DataFusionResult<Arc<dyn TableSource>> {
        let fault = Fault::new(
            FaultKind::UndefinedFunction,
            format!("table function \"{name}\" does not exist"),
        );
        let known = closest(name, ["tumble", "hop", "unnest"]);
        Err(external(match known {
            Some(known) => fault.hint(format!("did you mean \"{known}\"?")),
            None => fault,
        }))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.functions.state().expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        self.functions.relation_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.functions.state().scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.functions
            .state()
            .higher_order_functions()
            .get(name)
            .cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.functions
            .state()
            .aggregate_functions()
            .get(name)
            .cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.functions.state().window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.functions.config()
    }

    fn udf_names(&self) -> Vec<String> {
        self.functions
            .state()
            .scalar_functions()
            .keys()
            .cloned()
            .collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.functions
            .state()
            .higher_order_functions()
            .keys()
            .cloned()
            .collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.functions
            .state()
            .aggregate_functions()
            .keys()
            .cloned()
            .collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.functions
            .state()
            .window_functions()
            .keys()
            .cloned()
            .collect()
    }
}

/// A view: DataFusion puts its plan in the place of a scan.
struct ViewSource {
    schema: SchemaRef,
    plan: LogicalPlan,
}

impl TableSource for ViewSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}
