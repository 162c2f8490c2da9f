use arrow::array::{Array, AsArray};
use arrow::datatypes::{Field, Fields, Int64Type};

use super::*;

fn column(data_type: DataType) -> Column {
    Column::new(&Arc::new(Field::new("c", data_type, true))).unwrap()
}

#[test]
fn a_rollback_leaves_no_trace_in_flat_columns() {
    let mut col = column(DataType::Int64);
    let Values::Int64(v) = &mut col.values else {
        panic!()
    };
    v.push(1);
    v.push_null();
    v.push(3);
    v.push_null();
    col.truncate(3);
    let Values::Int64(v) = &mut col.values else {
        panic!()
    };
    v.push(4);
    let array = col.take().unwrap();
    let values: Vec<_> = array.as_primitive::<Int64Type>().iter().collect();
    assert_eq!(values, [Some(1), None, Some(3), Some(4)]);
    assert_eq!(col.len(), 0);
}

#[test]
fn a_rollback_drops_half_written_text() {
    let mut col = column(DataType::Utf8);
    let Values::Text(v) = &mut col.values else {
        panic!()
    };
    v.push(b"kept");
    v.open_value().extend_from_slice(b"half");
    col.truncate(1);
    let Values::Text(v) = &mut col.values else {
        panic!()
    };
    v.push(b"next");
    let array = col.take().unwrap();
    assert_eq!(
        array
            .as_string::<i32>()
            .iter()
            .flatten()
            .collect::<Vec<_>>(),
        ["kept", "next"]
    );
}

#[test]
fn a_rollback_reaches_into_structs_and_arrays() {
    let item = Arc::new(Field::new("x", DataType::Int64, false));
    let fields = Fields::from(vec![Field::new("xs", DataType::List(item), true)]);
    let mut col = column(DataType::Struct(fields));
    let push = |col: &mut Column, items: &[i64], complete: bool| {
        let Values::Struct(s) = &mut col.values else {
            panic!()
        };
        let Values::List(l) = &mut s.columns[0].values else {
            panic!()
        };
        let Values::Int64(v) = &mut l.items.values else {
            panic!()
        };
        items.iter().for_each(|i| v.push(*i));
        if complete {
            l.end_value();
            s.end_value();
        }
    };
    push(&mut col, &[1, 2], true);
    push(&mut col, &[3, 4], false);
    col.truncate(1);
    col.push_null();
    push(&mut col, &[5], true);
    let array = col.take().unwrap();
    assert_eq!((array.len(), array.null_count()), (3, 1));
    let lists = array.as_struct().column(0).as_list::<i32>();
    assert_eq!(
        lists.values().as_primitive::<Int64Type>().values().as_ref(),
        [1, 2, 5]
    );
}

#[test]
fn fixed_size_lists_pad_their_nulls() {
    let item = Arc::new(Field::new("x", DataType::Int64, true));
    let mut col = column(DataType::FixedSizeList(item, 2));
    col.push_null();
    let Values::List(l) = &mut col.values else {
        panic!()
    };
    l.items.push_null();
    l.items.push_null();
    assert_eq!(l.n_open_items(), 2);
    l.end_value();
    let array = col.take().unwrap();
    assert_eq!((array.len(), array.null_count()), (2, 1));
}

#[test]
fn other_spellings_of_text_are_cast_at_the_end() {
    let mut col = column(DataType::Utf8View);
    let Values::Text(v) = &mut col.values else {
        panic!()
    };
    v.push(b"x");
    assert_eq!(col.take().unwrap().data_type(), &DataType::Utf8View);
}

#[test]
fn types_that_no_text_spells_are_refused() {
    let field = Arc::new(Field::new("c", DataType::Null, true));
    let error = Column::new(&field).unwrap_err().to_string();
    assert_eq!(error, "column \"c\" has type Null, which cannot be read");
}
